import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from trainer.optimization.ema import MovingAverage


def trained(steps: int) -> tuple[nn.Module, MovingAverage, AveragedModel]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    average = MovingAverage([model], 0.9)
    theirs = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    theirs.update_parameters(model)  # theirs begins with the first weights that it is shown
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        model(torch.randn(5, 3)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        average.update()
        theirs.update_parameters(model)
    return model, average, theirs


def test_it_is_torchs_average() -> None:
    model, average, theirs = trained(5)
    live = {name: value.clone() for name, value in model.state_dict().items()}
    with average.exchanged():
        for name, value in theirs.module.named_parameters():
            torch.testing.assert_close(model.get_parameter(name), value)
            assert not torch.equal(value, live[name])
        # Buffers are the model's own, as theirs are.
        assert torch.equal(model.get_buffer("1.running_mean"), theirs.module.get_buffer("1.running_mean"))
    assert all(torch.equal(value, live[name]) for name, value in model.state_dict().items())


def test_it_is_loaded_by_name() -> None:
    _, average, _ = trained(3)
    saved = {name: value.clone() for name, value in average.state_dict().items()}
    assert list(saved)[:2] == ["ema.0.weight", "ema.0.bias"]
    _, other, _ = trained(1)
    other.load_state_dict(dict(reversed(saved.items())))
    assert all(torch.equal(value, saved[name]) for name, value in other.state_dict().items())
