import pytest
import torch
from torch import Tensor
from torch.nn import functional

from trainer.data import Shape
from trainer.data.sets import IGNORED
from trainer.optimization.objective import AUXILIARY, TrainingObjective, objective_for

IMAGES = Shape(sample=(1, 4, 4), classes=3)
MASKS = Shape(sample=(3, 2, 3), classes=4, kind="segmentation")


def whole_and_parts(objective: TrainingObjective, outputs: Tensor, targets: Tensor) -> tuple[dict[str, float], ...]:
    """Scores of one batch, and of uneven parts of it added up."""
    one = objective.measure(outputs, targets)
    assert one.dtype == torch.float64
    parts = sum(
        (objective.measure(outputs[part], targets[part]) for part in (slice(0, 1), slice(1, 5), slice(5, None))),
        start=torch.zeros_like(one),
    )
    return tuple(objective.conclude(sums.tolist(), len(targets)) for sums in (one, parts))


def test_classification() -> None:
    objective = objective_for(IMAGES)
    outputs, targets = torch.randn(7, 3), torch.randint(3, (7,))
    assert objective.loss(outputs, targets) == functional.cross_entropy(outputs, targets, reduction="sum")
    whole, parts = whole_and_parts(objective, outputs, targets)
    assert whole == pytest.approx(parts, rel=1e-6)
    assert whole["accuracy"] == (outputs.argmax(dim=1) == targets).double().mean()
    assert whole["loss"] == pytest.approx(float(functional.cross_entropy(outputs, targets)), rel=1e-6)


def pixels() -> tuple[Tensor, Tensor]:
    chance = torch.Generator().manual_seed(0)
    targets = torch.randint(4, (7, 2, 3), generator=chance)
    targets[0, 0] = IGNORED
    targets[3] = IGNORED
    return torch.randn(7, 4, 2, 3, generator=chance), targets


@pytest.mark.parametrize(
    ("shape", "outputs", "targets"), [(IMAGES, (4099, 3), (4099,)), (MASKS, (7, 4, 99, 99), (7, 99, 99))]
)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_sums_of_outputs_of_16_bits_are_exact(
    shape: Shape, outputs: tuple[int, ...], targets: tuple[int, ...], dtype: torch.dtype
) -> None:
    """As a model under autocast answers them: a sum in their own type would be rounded, or infinite."""
    objective = objective_for(shape)
    answered, wanted = (30 * torch.randn(outputs)).to(dtype), torch.randint(shape.classes, targets)
    torch.testing.assert_close(
        objective.measure(answered, wanted), objective.measure(answered.double(), wanted), rtol=1e-5, atol=0
    )


def test_a_samples_loss_is_the_mean_over_its_valid_pixels() -> None:
    objective = objective_for(MASKS)
    outputs, targets = pixels()
    expected = sum(
        functional.cross_entropy(outputs[at][None], targets[at][None], ignore_index=IGNORED)
        for at in range(7)
        if at != 3
    )
    torch.testing.assert_close(objective.loss({"out": outputs}, targets), expected)
    torch.testing.assert_close(
        objective.loss({"out": outputs, "aux": outputs}, targets), (1 + AUXILIARY) * torch.as_tensor(expected)
    )


def test_a_batch_without_a_valid_pixel_has_no_loss_and_no_gradient() -> None:
    objective = objective_for(MASKS)
    outputs = torch.randn(2, 4, 2, 3, requires_grad=True)
    targets = torch.full((2, 2, 3), IGNORED)
    loss = objective.loss(outputs, targets)
    loss.backward()  # type: ignore[no-untyped-call]
    assert loss == 0
    assert outputs.grad is not None
    assert not outputs.grad.any()
    scores = objective.conclude(objective.measure(outputs, targets).tolist(), 2)
    assert scores == {"loss": 0, "pixel_accuracy": 0, "mean_iou": 0}


def test_overlap_is_that_of_the_whole_set() -> None:
    outputs, targets = pixels()
    whole, parts = whole_and_parts(objective_for(MASKS), outputs, targets)
    assert whole == pytest.approx(parts, rel=1e-6)
    predicted, valid = outputs.argmax(dim=1), targets != IGNORED
    assert whole["pixel_accuracy"] == pytest.approx(float((predicted == targets)[valid].double().mean()))
    overlaps = []
    for kind in range(4):
        hits = ((predicted == kind) & (targets == kind)).sum()
        union = (((predicted == kind) | (targets == kind)) & valid).sum()
        overlaps.append(float(hits / union))
    assert whole["mean_iou"] == pytest.approx(sum(overlaps) / 4)


def test_classes_that_never_occur_do_not_lower_the_mean() -> None:
    targets = torch.zeros(1, 2, 3, dtype=torch.long)
    outputs = functional.one_hot(targets, 4).permute(0, 3, 1, 2).float()
    objective = objective_for(MASKS)
    assert objective.conclude(objective.measure(outputs, targets).tolist(), 1)["mean_iou"] == 1


def test_outputs_are_trimmed_tensor_by_tensor() -> None:
    objective = objective_for(MASKS)
    outputs = torch.arange(6).view(3, 2)
    assert torch.equal(objective.trim(outputs, 2), outputs[:2])
    assert objective.trim({"out": outputs, "aux": outputs}, 1)["aux"].shape == (1, 2)
