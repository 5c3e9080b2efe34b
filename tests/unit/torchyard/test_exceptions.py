import inspect

import pytest

from torchyard import exceptions, problems
from torchyard.api import FieldProblem, Problem


def problem(kind: str, status: int, detail: str = "No.", errors: list[FieldProblem] | None = None) -> Problem:
    return Problem(type=problems.BASE + kind, title="Title", status=status, detail=detail, errors=errors or [])


@pytest.mark.parametrize(
    ("kind", "status", "expected"),
    [
        ("never-fits", 422, exceptions.NeverFitsError),
        ("invalid-request", 422, exceptions.InvalidRequestError),
        ("not-acceptable-state", 409, exceptions.NotAcceptableStateError),
        ("conflict", 409, exceptions.ConflictError),
        ("a-kind-of-tomorrow", 404, exceptions.NotFoundError),
        ("internal", 500, exceptions.ServiceError),
        ("unknown-host", 421, exceptions.RefusedError),
    ],
)
def test_a_problem_becomes_the_nearest_exception(kind: str, status: int, expected: type[Exception]) -> None:
    assert type(exceptions.from_problem(problem(kind, status))) is expected


def test_the_message_names_every_field_once() -> None:
    errors = [FieldProblem(field="name", message="too long"), FieldProblem(field="env.A", message="not allowed")]
    message = str(exceptions.from_problem(problem("invalid-request", 422, "name: too long", errors)))
    assert message == "name: too long; env.A: not allowed"


def test_every_exception_has_a_message_of_its_own() -> None:
    for _, kind in inspect.getmembers(exceptions, inspect.isclass):
        assert kind.__doc__
        if not issubclass(kind, exceptions.RefusedError):
            assert str(kind()) == " ".join(kind.__doc__.split())


def test_what_an_older_service_lacks_is_told_as_that() -> None:
    lacking = problem("not-found", 404, "There is no resource '/api/v1/nodes/idle'.")
    assert str(exceptions.from_problem(lacking)) == (
        "There is no resource '/api/v1/nodes/idle': the service is older than this program, so upgrade it, or use its "
        "version."
    )
