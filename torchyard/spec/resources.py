"""Resources that a job asks for."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from torchyard.quantities import Size
from torchyard.spec.base import Model, Tag
from torchyard.translatable import TranslatableText

MAX_NODES = 64
#: `resources.gpus` of a submission: as many as a node has. What is stored is a number.
ALL = "all"


def _decided(given: Any) -> Any:
    if given == ALL:
        raise ValueError(
            TranslatableText(
                "all-gpus", "all is made a number by the service when a job is submitted: give a number here"
            )
        )
    return given


_Gpus = Annotated[int, Field(ge=0, le=1024)]


class Resources(Model):
    """The resources that the job needs of a node."""

    gpus: Annotated[_Gpus, BeforeValidator(_decided, json_schema_input_type=_Gpus | Literal["all"])] = 1
    """GPUs (or CPU slots on a node without GPUs), exclusively the job's. 0 runs beside the GPUs. `all`: as many as a
    node can give, a number from the submission on."""
    nodes: Annotated[int, Field(ge=1, le=MAX_NODES)] = 1
    """Nodes, each with as many GPUs; they start and end together."""
    network_interface: Annotated[str, Field(pattern=r"^[A-Za-z0-9._:@-]{1,64}$")] | None = None
    """Interface that the ranks reach each other through; without it, the one that leads to the first node."""
    gpu_memory_min: Size | None = None
    """Memory that every GPU must have."""
    gpu_share: Annotated[Size, Field(gt=0)] | None = None
    """Memory of each GPU that the job needs: it shares the GPU with others; without it, the GPU is its own."""
    gpu_type: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    """Part of the GPUs' name, such as ``H200``; large and small letters are the same."""
    labels: Annotated[tuple[Tag, ...], Field(max_length=32)] = ()
    """Labels that every node of the job must have."""
    cpus: Annotated[int, Field(ge=1)] | None = None
    """CPU cores: the job gets no others, where the node's kernel enforces that."""
    memory: Size | None = None
    """Main memory, on each node: a job that takes more is ended."""
