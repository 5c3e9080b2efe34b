"""Users whose jobs a node would refuse since it has no UNIX account for them, or since they are deactivated.

A worker says whether it runs jobs of users without an account (`Capability.UNIX_ACCOUNTS`), and with each heartbeat as
which of the accounts that the service names it can run any.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, cast

from sqlalchemy import Connection, Select, Table, bindparam, select

from service.db.models import Node, User
from service.db.records.record import Record
from service.errors import ProblemError
from torchyard.api import FieldProblem, Reason
from torchyard.translatable import TranslatableText, joined
from torchyard.wire import Capability

_NODE, _USER = cast("Table", Node.__table__).c, cast("Table", User.__table__).c
_NODES: Select[Any] = select(_NODE.name, _NODE.capabilities, _NODE.accounts, _NODE.runs_as_root).order_by(_NODE.name)
_USERS: Select[Any] = select(_USER.id, _USER.name, _USER.unix_user, _USER.deactivated_us)
_USER_BY_ID: Select[Any] = _USERS.where(_USER.id == bindparam("user"))
_ACCOUNTS = (
    select(_USER.unix_user)
    .where(_USER.unix_user.is_not(None), _USER.deactivated_us.is_(None))
    .distinct()
    .order_by(_USER.unix_user)
)


class AccountRefusal(StrEnum):
    """Reason for which a node runs no jobs of a user."""

    #: The user has no account, and the node runs each job as its user's own.
    NONE = "none"
    #: There is no such account on the node, or it may not enter the folder of the attempts there.
    ABSENT = "absent"
    #: The worker is not root and may not become that account.
    FOREIGN = "foreign"
    #: The account is root, and the worker runs no jobs as root.
    ROOT = "root"
    #: It has not told yet; its next heartbeats do.
    UNTOLD = "untold"
    #: The user is deactivated: no node runs any of their jobs.
    DEACTIVATED = "deactivated"


@dataclass(frozen=True, slots=True)
class UserAccount(Record):
    """A user, and the UNIX account that their jobs run as."""

    id: str
    name: str
    unix_user: str | None
    deactivated_us: int | None


@dataclass(frozen=True, slots=True)
class _NodeAccounts(Record):
    """UNIX accounts that a node has been asked about, and whether it can run jobs as them."""

    name: str
    capabilities: tuple[str, ...] | None
    accounts: Mapping[str, bool] | None
    runs_as_root: bool

    @property
    def strict(self) -> bool:
        """True if the node runs no jobs of users without an account."""
        return Capability.UNIX_ACCOUNTS in (self.capabilities or ())


def named(tx: Connection) -> list[str]:
    """Return the UNIX accounts of users: nodes are asked about them."""
    return list(tx.scalars(_ACCOUNTS))


def excluded_nodes(tx: Connection) -> dict[str, frozenset[str]]:
    """Return the nodes that run no jobs of a user, by user id; users whom all nodes accept are left out."""
    nodes = _nodes(tx)
    found = {user.id: frozenset(_refusals(nodes, user)) for user in UserAccount.each(tx.execute(_USERS))}
    return {user: excluded for user, excluded in found.items() if excluded}


class AccountWarnings:
    """Warnings about the UNIX accounts of users, from what the nodes have reported; read once for many users."""

    def __init__(self, tx: Connection) -> None:
        self._nodes = _nodes(tx)

    def warning(self, user: UserAccount) -> str | None:
        """Return a warning for a user whose jobs some nodes would refuse; None if no node would."""
        return _explain(user, _known(_refusals(self._nodes, user))) or None


def check(tx: Connection, user_id: str, able: Sequence[str], enough: Callable[[Sequence[str]], bool]) -> None:
    """Raise ``never-fits`` if too few of the nodes that could hold a user's job (`able`) would run it."""
    user = UserAccount.one(tx.execute(_USER_BY_ID, {"user": user_id}))
    refusals = {node: why for node, why in _known(_refusals(_nodes(tx), user)).items() if node in able}
    if refusals and not enough([node for node in able if node not in refusals]):
        what = _explain(user, refusals)
        raise ProblemError("never-fits", f"user: {what}", errors=[FieldProblem(field="user", message=what)])


def reasons(tx: Connection, user_id: str) -> dict[str, Reason]:
    """Return the reasons why nodes run no jobs of a user, by node."""
    user = UserAccount.one(tx.execute(_USER_BY_ID, {"user": user_id}))
    return {node: _reason(user, node, why) for node, why in _refusals(_nodes(tx), user).items()}


def _reason(user: UserAccount, node: str, why: AccountRefusal) -> Reason:
    params = {"refusal": why.value, "node": node, "user": user.name, "account": user.unix_user or ""}
    return Reason(code="account", message=_explain(user, {node: why}), params=params)


def _nodes(tx: Connection) -> list[_NodeAccounts]:
    return _NodeAccounts.all(tx.execute(_NODES))


def _refusals(nodes: Sequence[_NodeAccounts], user: UserAccount) -> dict[str, AccountRefusal]:
    """Return the refusals of a user, by node."""
    if user.deactivated_us is not None:
        return {node.name: AccountRefusal.DEACTIVATED for node in nodes}
    found = ((node.name, _refusal(node, user.unix_user)) for node in nodes)
    return {name: why for name, why in found if why is not None}


def _refusal(node: _NodeAccounts, account: str | None) -> AccountRefusal | None:
    if account is None:
        return AccountRefusal.NONE if node.strict else None
    if node.accounts is None or node.accounts.get(account):
        return None
    if account not in node.accounts:
        return AccountRefusal.UNTOLD
    if not node.runs_as_root:
        return AccountRefusal.FOREIGN
    return AccountRefusal.ROOT if account == "root" else AccountRefusal.ABSENT


def _known(refusals: Mapping[str, AccountRefusal]) -> dict[str, AccountRefusal]:
    return {node: why for node, why in refusals.items() if why is not AccountRefusal.UNTOLD}


def _explain(user: UserAccount, refusals: Mapping[str, AccountRefusal]) -> str:
    """Return a sentence with the remedy for each kind of refusal."""
    by_sort = {why: [node for node, each in refusals.items() if each is why] for why in AccountRefusal}
    return joined([_sentence(user, why, nodes) for why, nodes in by_sort.items() if nodes])


def _sentence(user: UserAccount, why: AccountRefusal, nodes: Sequence[str]) -> TranslatableText:
    where, name, account = _where(nodes), user.name, user.unix_user or ""
    match why:
        case AccountRefusal.NONE:
            return TranslatableText(
                "account-none",
                "{user} has no UNIX account, so {where} will run none of their jobs: an administrator names it with "
                "`yard users set {user} --unix-user ACCOUNT`, or starts the worker with TORCHYARD_ONE_TRUST_DOMAIN=1, "
                "if all users may act as the worker's own UNIX user",
                user=name,
                where=where,
            )
        case AccountRefusal.ABSENT:
            return TranslatableText(
                "account-absent",
                "the UNIX account {account} of {user} does not exist on {where}, or may not enter the attempts there: "
                "an administrator creates it there, lets it in (the worker's log says where), or names another with "
                "`yard users set {user} --unix-user ACCOUNT`",
                account=account,
                user=name,
                where=where,
            )
        case AccountRefusal.FOREIGN:
            return TranslatableText(
                "account-foreign",
                "the worker on {where} may not become {account}, the UNIX account of {user}: an administrator runs it "
                "as root, or with TORCHYARD_ONE_TRUST_DOMAIN=1, if all users may act as the worker's own UNIX user",
                where=where,
                account=account,
                user=name,
            )
        case AccountRefusal.ROOT:
            return TranslatableText(
                "account-root",
                "jobs of {user} would run as root on {where}, which its worker refuses: an administrator names another "
                "account with `yard users set {user} --unix-user ACCOUNT`, or starts the worker with "
                "TORCHYARD_ROOT_JOBS=1",
                user=name,
                where=where,
            )
        case AccountRefusal.UNTOLD:
            return TranslatableText(
                "account-untold",
                "{where} has not told yet whether it can run jobs as {account}, the UNIX account of {user}",
                where=where,
                account=account,
                user=name,
            )
        case AccountRefusal.DEACTIVATED:
            return TranslatableText(
                "account-deactivated",
                "{user} is deactivated, so no node starts their jobs: an administrator cancels them, or ends that with "
                "`yard users set {user} --active`",
                user=name,
            )


def _where(nodes: Sequence[str]) -> TranslatableText:
    if len(nodes) == 1:
        return TranslatableText("the-node", "node {node}", node=nodes[0])
    return TranslatableText("the-nodes", "nodes {nodes}", nodes=tuple(nodes))
