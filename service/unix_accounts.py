"""Users without a UNIX account, and the nodes that run nobody's jobs without one."""

from collections.abc import Sequence

from sqlalchemy import Connection, select

from service.db.models import Node, User
from service.problems import ProblemError
from torchyard.api import FieldProblem
from torchyard.wire import Capability


def strict_nodes(tx: Connection) -> set[str]:
    """Names of the nodes whose workers run each job as its user's own UNIX account."""
    rows = tx.execute(select(Node.name, Node.capabilities))
    return {row.name for row in rows if Capability.UNIX_ACCOUNTS in (row.capabilities or ())}


def warning(name: str, unix_user: str | None, strict: set[str]) -> str | None:
    """What is to be said of a user whose jobs some nodes would refuse; None if there is nothing."""
    if unix_user is not None or not strict:
        return None
    return f"{name} has no UNIX account, so {_of(strict)} will run none of their jobs: {_mend(name)}"


def check(tx: Connection, user_id: str, able: Sequence[str], nodes: int) -> None:
    """Raises ``never-fits`` if too few of the nodes that could hold a user's job would run it."""
    row = tx.execute(select(User.name, User.unix_user).where(User.id == user_id)).one()
    if row.unix_user is not None:
        return
    strict = strict_nodes(tx).intersection(able)
    if not strict or len(able) - len(strict) >= nodes:
        return
    what = f"{row.name} has no UNIX account, and {_of(strict)} runs each job as its user's own: {_mend(row.name)}"
    raise ProblemError("never-fits", f"user: {what}", errors=[FieldProblem(field="user", message=what)])


def _of(strict: set[str]) -> str:
    return f"node{'s' if len(strict) > 1 else ''} {', '.join(sorted(strict))}"


def _mend(name: str) -> str:
    return (
        f"an administrator names it with `yard users set {name} --unix-user ACCOUNT`, or starts the worker with "
        "TORCHYARD_ONE_TRUST_DOMAIN=1, if all users may act as the worker's own UNIX user"
    )
