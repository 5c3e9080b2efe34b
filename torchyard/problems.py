"""Problem types of the REST API (RFC 9457): their URIs, titles and statuses. Frozen: programs rely on them."""

from dataclasses import dataclass

BASE = "https://torchyard.dev/problems/"


@dataclass(frozen=True)
class ProblemType:
    """A problem type: its short title and HTTP status."""

    title: str
    status: int


KINDS: dict[str, ProblemType] = {
    "invalid-request": ProblemType("The request is not valid", 422),
    "never-fits": ProblemType("The job could never start on this installation", 422),
    "idempotency-mismatch": ProblemType("The idempotency key was used for another body", 422),
    "unauthorized": ProblemType("No valid token or session", 401),
    "forbidden": ProblemType("Not allowed", 403),
    "not-found": ProblemType("Not found", 404),
    "method-not-allowed": ProblemType("The resource does not have this method", 405),
    "conflict": ProblemType("The request contradicts what is stored", 409),
    "not-acceptable-state": ProblemType("The job is in a state that does not allow this", 409),
    "precondition-failed": ProblemType("The resource has changed", 412),
    "payload-too-large": ProblemType("The body is too large", 413),
    "unsupported-media-type": ProblemType("The content type is not read here", 415),
    "range-not-satisfiable": ProblemType("The range lies outside the file", 416),
    "unknown-host": ProblemType("The Host header is not one of this installation's", 421),
    "protocol-mismatch": ProblemType("The agent's protocol is not spoken here", 426),
    "precondition-required": ProblemType("If-Match is required", 428),
    "too-many-requests": ProblemType("Too many requests", 429),
    "internal": ProblemType("The service failed", 500),
    "unavailable": ProblemType("Not available now", 503),
    "insufficient-storage": ProblemType("A disk of the service is full", 507),
}


def type_uri(kind: str) -> str:
    """The `type` of a problem; KeyError for a kind that does not exist."""
    if kind not in KINDS:
        raise KeyError(kind)
    return BASE + kind


def kind_for_status(status: int) -> str:
    """The most general kind of a status that a framework gave without naming a kind."""
    general = {400: "invalid-request", 404: "not-found", 409: "conflict", 422: "invalid-request"}
    if status in general:
        return general[status]
    return next((kind for kind, value in KINDS.items() if value.status == status), "internal")
