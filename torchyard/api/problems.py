"""Problem details."""

from torchyard.api.base import Resource


class Problem(Resource):
    """RFC 9457 problem details; `type` is one of the frozen URIs in `torchyard.problems`."""

    type: str
    title: str
    status: int
    detail: str
    errors: list["FieldProblem"] = []


class FieldProblem(Resource):
    """One wrong field: where, what, and the mend."""

    field: str
    message: str
