"""Whether the installation could ever run a job, judged before it is queued for ever."""

from sqlalchemy import Connection, select

from service.db.models import Device, Node
from service.problems import ProblemError
from service.scheduler.boxes import Box, Shape, Slot
from service.scheduler.load import shape_of
from service.scheduler.policy import never_fits
from torchyard.api import FieldProblem
from torchyard.spec import JobSpec

_DEVICES = select(Device.node, Device.uuid, Device.index.label("at"), Device.memory, Device.kind).where(Device.present)
_NODES = select(Node.name, Node.cpus, Node.memory)


def check(tx: Connection, spec: JobSpec) -> str:
    """A sentence for the event of the submission; the problem ``never-fits`` says what each node has.

    Before the first node has registered everything is taken: a worker is about to come, and what it has is not known.
    """
    boxes = capacity(tx)
    if not boxes:
        return "submitted; no node has registered yet, so whether it fits one is not known"
    lacks = never_fits(shape_of(spec.resources), boxes)
    if lacks:
        what = "; ".join(lacks)
        field = wrong_field(shape_of(spec.resources), boxes)
        raise ProblemError(
            "never-fits",
            f"{field}: no node could ever run this job: {what}. Ask for less, or add a node.",
            errors=[FieldProblem(field=field, message=what)],
        )
    return "submitted"


def wrong_field(shape: Shape, boxes: list[Box]) -> str:
    """The first field that no node satisfies even alone; all of them together if each alone would fit somewhere."""
    alone = {
        "resources.gpus": Shape(gpus=shape.gpus),
        "resources.gpu_memory_min": Shape(gpus=shape.gpus, gpu_memory_min=shape.gpu_memory_min),
        "resources.cpus": Shape(gpus=0, cpus=shape.cpus),
        "resources.memory": Shape(gpus=0, memory=shape.memory),
    }
    return next((field for field, part in alone.items() if never_fits(part, boxes)), "resources")


def capacity(tx: Connection) -> list[Box]:
    """The nodes and what they have, whoever holds it."""
    slots: dict[str, list[Slot]] = {}
    for row in tx.execute(_DEVICES):
        slots.setdefault(row.node, []).append(Slot(uuid=row.uuid, index=row.at, memory=row.memory, kind=row.kind))
    nodes = tx.execute(_NODES).all()
    return [
        Box(node=node.name, slots=tuple(slots.get(node.name, ())), cpus=node.cpus, memory=node.memory) for node in nodes
    ]
