import hashlib
from pathlib import Path
from typing import Any

import pytest
import torch
import torchvision

from tests.support import http_files
from torchyard.recipe import Recipe
from torchyard.recipe.models import ModelOptions
from trainer.data import Shape
from trainer.exceptions import DownloadError, RecipeError
from trainer.models import MODELS, check_model, vision
from trainer.models.layers import as_layers


def options(name: str, **given: Any) -> ModelOptions:
    data = {"name": "custom", "target": "a:b"}
    return Recipe.model_validate({"model": {"name": name, **given}, "data": data}).model


def made(name: str, shape: Shape, **given: Any) -> torch.nn.Module:
    return MODELS[name](options(name, **given), shape)


def parameters(model: torch.nn.Module) -> int:
    return sum(each.numel() for each in model.parameters())


@pytest.mark.parametrize(
    ("name", "given", "sample"),
    [
        ("digits_cnn", {}, (1, 8, 8)),
        ("digits_cnn", {"channels": 3}, (3, 9, 5)),
        ("mnist_cnn", {"channels": 4, "hidden": 9}, (1, 28, 28)),
        ("mlp", {}, (1, 28, 28)),
        ("mlp", {"hidden": []}, (17,)),
        ("tiny_vgg", {}, (3, 32, 32)),
        ("tiny_vgg", {"widths": [4], "hidden": 5}, (1, 2, 2)),
        ("resnet", {"depth": 18}, (3, 32, 32)),
    ],
)
def test_input_and_output_widths_follow_the_data(name: str, given: dict[str, Any], sample: tuple[int, ...]) -> None:
    model = made(name, Shape(sample=sample, classes=7), **given)
    assert model(torch.zeros(2, *sample)).shape == (2, 7)


@pytest.mark.parametrize(
    ("name", "given", "side", "millions"),
    [
        ("alexnet", {}, 224, 61.1),
        ("alexnet", {}, 63, 61.1),
        ("vgg16", {}, 32, 138.4),
        ("resnet", {"depth": 18}, 64, 11.7),
        ("resnet", {"depth": 34}, 64, 21.8),
        ("resnet", {}, 64, 25.6),
        ("resnet", {"depth": 101}, 64, 44.5),
    ],
)
def test_torchvisions_models_have_their_known_sizes(
    name: str, given: dict[str, Any], side: int, millions: float
) -> None:
    with torch.device("meta"):
        model = made(name, Shape(sample=(3, side, side), classes=1000), **given)
        outputs = model(torch.zeros(2, 3, side, side))
    assert outputs.shape == (2, 1000)
    assert parameters(model) / 1e6 == pytest.approx(millions, abs=0.05)


def test_the_tutorials_network_for_mnist_and_mlp_have_their_sizes() -> None:
    shape = Shape(sample=(1, 28, 28), classes=10)
    with torch.device("meta"):
        cnn, mlp = made("mnist_cnn", shape), made("mlp", shape)
    names = {name: tuple(value.shape) for name, value in cnn.state_dict().items() if value.dim() > 1}
    assert list(names.values()) == [(64, 1, 3, 3), (128, 64, 3, 3), (1024, 14 * 14 * 128), (10, 1024)]
    linears = [tuple(value.shape) for value in mlp.state_dict().values() if value.dim() > 1]
    assert linears == [(256, 784), (128, 256), (10, 128)]


@pytest.mark.parametrize("aux", [False, True])
def test_deeplab_answers_scores_for_each_pixel(aux: bool) -> None:
    shape = Shape(sample=(3, 65, 65), classes=21, kind="segmentation")
    with torch.device("meta"):
        model = made("deeplabv3_resnet101", shape, aux_loss=aux)
        outputs = model(torch.zeros(2, 3, 65, 65))
    assert set(outputs) == ({"out", "aux"} if aux else {"out"})
    assert all(scores.shape == (2, 21, 65, 65) for scores in outputs.values())
    assert parameters(model) / 1e6 == pytest.approx(61.0 if aux else 58.6, abs=0.1)


def test_the_tiny_segmenter_answers_alike() -> None:
    shape = Shape(sample=(3, 17, 21), classes=4, kind="segmentation")
    outputs = made("tiny_segmenter", shape)(torch.zeros(2, 3, 17, 21))
    assert {name: scores.shape for name, scores in outputs.items()} == {"out": (2, 4, 17, 21)}


@pytest.mark.parametrize("name", ["alexnet", "vgg16", "resnet", "tiny_vgg", "mnist_cnn", "digits_cnn", "mlp"])
def test_models_of_classes_can_be_cut_into_layers(name: str) -> None:
    with torch.device("meta"):
        model = made(name, Shape(sample=(3, 64, 64), classes=7))
        layers = as_layers(model)
        outputs = torch.zeros(2, 3, 64, 64)
        for _, layer in layers:
            outputs = layer(outputs)
    assert outputs.shape == (2, 7)
    assert [f"{prefix}.{key}" for prefix, layer in layers for key in layer.state_dict()] == list(model.state_dict())


def test_the_tiny_vgg_has_vggs_names() -> None:
    with torch.device("meta"):
        large = torchvision.models.vgg16()
    model = made("tiny_vgg", Shape(sample=(3, 32, 32), classes=3))
    assert {name.split(".")[0] for name in model.state_dict()} == {name.split(".")[0] for name in large.state_dict()}


@pytest.mark.parametrize(
    ("name", "shape", "reason"),
    [
        ("resnet", Shape(sample=(1, 28, 28), classes=10), "model resnet needs images of 3 channels"),
        ("digits_cnn", Shape(sample=(9,), classes=10), r"model digits_cnn needs images of .* but data.shape is \[9\]"),
        ("mlp", Shape(sample=(3, 8, 8), classes=4, kind="segmentation"), "model mlp answers one class for each sample"),
        ("tiny_segmenter", Shape(sample=(3, 8, 8), classes=4), "model tiny_segmenter answers one class for each pixel"),
    ],
)
def test_data_that_a_model_does_not_take_are_refused(name: str, shape: Shape, reason: str) -> None:
    """Of a job's own data the spec's check knows nothing."""
    recipe = Recipe.model_validate({"model": name, "data": {"name": "custom", "target": "a:b"}})
    with pytest.raises(RecipeError, match=reason):
        check_model(recipe, shape)
    check_model(recipe.model_copy(update={"model": options("custom", target="a:b")}), shape)


def small_resnet(**given: Any) -> torchvision.models.ResNet:
    return torchvision.models.ResNet(torchvision.models.resnet.BasicBlock, [1, 1, 1, 1], **given)


def test_weights_are_downloaded_checked_and_loaded_but_for_the_last_layer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small network stands for torchvision's, and this machine for its server."""
    trained = small_resnet()
    torch.save(trained.state_dict(), tmp_path / "trained.pth")
    content = (tmp_path / "trained.pth").read_bytes()
    name = f"resnet18-{hashlib.sha256(content).hexdigest()[:8]}.pth"
    monkeypatch.setenv("TORCHYARD_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(torchvision.models, "get_model", lambda _name, weights, **given: small_resnet(**given))
    with http_files.served() as files:
        files.contents[name] = content
        place = type("Weight", (), {"url": files.url(name)})
        monkeypatch.setattr(torchvision.models, "get_model_weights", lambda _name: {"IMAGENET1K_V1": place})
        images = Shape(sample=(3, 32, 32), classes=7)
        model = made("resnet", images, depth=18, weights="imagenet")
        made("resnet", images, depth=18, weights="imagenet")
        assert files.requests == [(name, 0)]
        assert (tmp_path / "data/weights" / name).is_file()
        files.contents[other := "resnet18-00000000.pth"] = content
        place.url = files.url(other)
        with pytest.raises(DownloadError, match="does not match sha256:00000000"):
            made("resnet", images, depth=18, weights="imagenet")
    loaded = model.state_dict()
    assert loaded["fc.weight"].shape == (7, 512)
    assert all(torch.equal(loaded[name], value) for name, value in trained.state_dict().items() if "fc." not in name)


def test_torchvisions_addresses_hold_checksums() -> None:
    for name in ("alexnet", "vgg16", "resnet18", "resnet34", "resnet50", "resnet101"):
        source = vision.weights_source(torchvision.models.get_model_weights(name)["IMAGENET1K_V1"].url)
        assert source.checksum.startswith("sha256:")
        assert source.file.startswith(f"weights/{name.split('1')[0][:6]}")
