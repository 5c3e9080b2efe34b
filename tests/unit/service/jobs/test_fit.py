import pytest

from service.jobs.fit import wrong_field
from service.scheduler.boxes import Box, Shape, Slot

SLOTS = tuple(Slot(uuid=f"g{n}", index=n, memory=24) for n in range(2))
BOXES = [Box(node="a", slots=SLOTS, cpus=8, memory=64), Box(node="b", slots=(), cpus=64, memory=512)]


@pytest.mark.parametrize(
    ("shape", "field"),
    [
        (Shape(gpus=3), "resources.gpus"),
        (Shape(gpus=1, gpu_memory_min=80), "resources.gpu_memory_min"),
        (Shape(gpus=0, cpus=65), "resources.cpus"),
        (Shape(gpus=0, memory=513), "resources.memory"),
        (Shape(gpus=1, cpus=64), "resources"),
    ],
)
def test_the_field_that_is_too_much_is_named(shape: Shape, field: str) -> None:
    assert wrong_field(shape, BOXES) == field
