"""Problem details."""

from torchyard.api.base import Resource


class Problem(Resource):
    """RFC 9457 problem details; `type` is one of the frozen URIs in `torchyard.problems`."""

    type: str
    """URI of the kind of problem; programs decide by this."""
    title: str
    """The kind of problem in words."""
    status: int
    """HTTP status."""
    detail: str
    """What is wrong here, and the mend."""
    errors: list["FieldProblem"] = []
    """The wrong fields, each with its own message."""


class FieldProblem(Resource):
    """One wrong field: where, what, and the mend."""

    field: str
    """Dotted path of the field."""
    message: str
    """What is wrong, and the mend."""
