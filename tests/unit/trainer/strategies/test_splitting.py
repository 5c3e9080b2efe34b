import pytest
import torch
import torchvision
from torch import nn

from trainer.strategies.splitting import DropoutOfPiece, plan, plan_of


def chain(*modules: nn.Module) -> list[tuple[str, nn.Module]]:
    return [(str(number), module) for number, module in enumerate(modules)]


@pytest.mark.parametrize(
    ("modules", "planned"),
    [
        ([nn.Linear(3, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 3)], {"0": "columns", "3": "rows"}),
        (
            [nn.Linear(3, 8), nn.Linear(8, 8), nn.Linear(8, 5)],
            {"0": "columns", "1": "rows", "2": "gathered columns"},
        ),
        # Not element by element: the whole row is needed.
        ([nn.Linear(3, 8), nn.Softmax(1), nn.Linear(8, 1)], {"0": "gathered columns"}),
        # A width that does not divide.
        ([nn.Linear(3, 7), nn.ReLU(), nn.Linear(7, 4)], {"0": "gathered columns", "2": "gathered columns"}),
        ([nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Linear(4, 1)], {}),
    ],
)
def test_pairs_first(modules: list[nn.Module], planned: dict[str, str]) -> None:
    assert plan(chain(*modules), 2) == planned


def test_plans_of_whole_models() -> None:
    with torch.device("meta"):
        vgg, resnet = torchvision.models.vgg16(), torchvision.models.resnet18()
        attention = nn.Sequential(nn.TransformerEncoderLayer(8, 2, 16))
    assert plan_of(vgg, 2) == {"classifier.0": "columns", "classifier.3": "rows", "classifier.6": "gathered columns"}
    assert plan_of(resnet, 2) == {"fc": "gathered columns"}
    assert plan_of(attention, 2) == {}


def test_shared_weights_stay_whole() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4), nn.Linear(4, 4))
    model[0].weight = model[3].weight
    assert plan_of(model, 2) == {"2": "gathered columns"}


def test_weights_that_no_other_linear_layer_shares_stay_whole_too() -> None:
    layer = nn.Linear(4, 4)
    model = nn.ModuleDict({"words": nn.Embedding(4, 4), "out": layer})
    layer.weight = model["words"].weight
    assert plan_of(model, 2) == {}
    assert plan_of(nn.Sequential(nn.Sequential(nn.Linear(4, 4)), *[nn.Sequential(nn.Linear(4, 4))] * 2), 2) == {
        "0.0": "gathered columns"
    }


def test_pieces_drop_what_the_whole_would() -> None:
    samples = torch.randn(5, 8)
    torch.manual_seed(0)
    whole = nn.Dropout(0.4)(samples)
    pieces = []
    for rank in range(2):
        torch.manual_seed(0)
        pieces.append(DropoutOfPiece(0.4, rank, 2)(samples.chunk(2, dim=1)[rank]))
    torch.testing.assert_close(torch.cat(pieces, dim=1), whole)
    assert torch.equal(DropoutOfPiece(0.4, 0, 2).eval()(samples), samples)
