"""Protocol version, Celery tasks, and the base of all messages."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict

from torchyard.described import Described

PROTOCOL = 1
PROTOCOL_HEADER = "TorchYard-Protocol"
#: File in the artifact store's inbox that shows a worker that it sees the same file system.
INBOX_PROBE = "probe"
#: Bytes of one node's stacks, as JSON.
MAX_DUMP = 2 * 2**20
#: Celery task that tells a node of an assigned attempt; its only argument is the attempt's id.
LAUNCH_TASK = "torchyard.launch"
#: Header of that task's message: the service's clock in microseconds when it was published.
PUBLISHED_HEADER = "torchyard_published_us"
#: Celery task that makes a node ask for its orders at once; it has no argument.
NUDGE_TASK = "torchyard.nudge"


def node_queue(node: str) -> str:
    """The Celery queue of a node."""
    return f"node.{node}"


class Message(BaseModel):
    """Base of all wire messages; unknown fields of a newer peer are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class DescribedMessage(Message, Described):
    """Base of those that the REST API shows, too: its description has the words below each field."""


def storable(text: str) -> str:
    """Return a text without what no database and no answer can hold."""
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()


#: Words of a job's programs. Databases hold no NUL and answers no half characters, but nothing is refused for one.
Text = Annotated[str, AfterValidator(storable)]
