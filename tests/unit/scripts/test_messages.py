import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts import messages

#: What a submitted spec is refused with.
OF_SPECS = ["torchyard/spec", "torchyard/recipe", "torchyard/quantities.py", "torchyard/control_characters.py"]

#: What people are refused with who act in the dashboard: the argument that is the message.
OF_ACTIONS = [
    "service/accounting/policy_settings.py",
    "service/accounting/usage_report.py",
    "service/api/auth.py",
    "service/api/open_streams.py",
    "service/api/routes/shared.py",
    "service/artifacts/discard.py",
    "service/identity/oidc.py",
    "service/identity/projects.py",
    "service/identity/roles.py",
    "service/identity/sessions.py",
    "service/identity/sign_in_limits.py",
    "service/identity/tokens.py",
    "service/identity/unix_sign_in.py",
    "service/identity/users.py",
    "service/jobs/change.py",
    "service/jobs/group_actions.py",
    "service/jobs/planning.py",
    "service/jobs/shared_links.py",
    "service/jobs/versions.py",
    "service/lifecycle/dependencies.py",
    "service/lifecycle/stop.py",
    "service/nodes/invitations.py",
    "service/nodes/maintenance.py",
    "service/nodes/registration.py",
    "service/nodes/reservations.py",
    "service/queue/what_if.py",
    "service/secrets/store.py",
]
ARGUMENTS = {"ProblemError": 1, "field_problem": 1, "Conflict": 0}


def test_the_translators_have_every_message() -> None:
    assert messages.FILE.read_text() == messages.text()


@pytest.mark.parametrize("place", OF_SPECS)
def test_a_mistake_in_a_spec_has_a_code(place: str) -> None:
    assert not [mistake for path in sources(place) for mistake in without_code(path, {"ValueError": 0})]


@pytest.mark.parametrize("place", OF_ACTIONS)
def test_a_refused_action_has_a_code(place: str) -> None:
    assert not [refusal for path in sources(place) for refusal in without_code(path, ARGUMENTS)]


def test_text_without_a_code_is_found(tmp_path: Path) -> None:
    (tmp_path / "made.py").write_text('raise ValueError("no")\nraise ValueError(f"no {x}")\nraise ValueError(found)\n')
    assert [line for _, line in without_code(tmp_path / "made.py", {"ValueError": 0})] == [1, 2]


def sources(place: str) -> list[Path]:
    found = messages.ROOT / place
    return sorted(found.rglob("*.py")) if found.is_dir() else [found]


def without_code(path: Path, calls: dict[str, int]) -> Iterator[tuple[str, int]]:
    """Yield the places of calls whose message, the argument of that number, is text as it stands."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in calls:
            given = node.args[calls[node.func.id] :][:1]
            if any(isinstance(each, ast.Constant | ast.JoinedStr) for each in given):
                yield path.name, node.lineno
