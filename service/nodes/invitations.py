"""Invitations of machines as nodes: one-time tokens, for each of which a machine gets a node token of its own."""

from sqlalchemy import Connection, update

from service.db.engine import Database
from service.db.models import Token
from service.errors import ProblemError
from service.identity import audit, tokens
from service.identity.callers import Caller, Tokens
from service.infra.times import moment
from torchyard import api
from torchyard.translatable import TranslatableText

#: The only scope of an invitation's token.
JOIN = "join"


def invite(db: Database, caller: Caller, node: str, asked: api.NewInvitation, now: int) -> api.Invitation:
    """Make an invitation; its token is in the answer and nowhere else."""
    ends = now + asked.expires_in * 1_000_000
    with db.write() as tx:
        made = tokens.issue(tx, caller.user_id, f"invitation of {node}", [JOIN], now, node=node, expires_us=ends)
        audit.record(tx, caller, "node.invite", node, now, token=made.id)
    return api.Invitation(node=node, token=made.secret, expires_at=moment(ends))


def join(db: Database, cache: Tokens, caller: Caller, new: api.NewNode, now: int) -> api.NodeToken:
    """Give the machine that was invited its own token; the invitation is over.

    ``forbidden`` for another node's name, which uses nothing up; ``unauthorized`` for an invitation that was used.
    """
    if caller.node != new.name:
        raise ProblemError(
            "forbidden",
            TranslatableText(
                "invitation-of-other",
                "This invitation is for node {node}, not {name}: start it with --name {node}.",
                node=str(caller.node),
                name=new.name,
            ),
        )
    with db.write() as tx:
        _use_up(tx, caller, now)
        made = tokens.issue(tx, caller.user_id, f"node {new.name}", ["node"], now, node=new.name)
        audit.record(tx, caller, "node.join", new.name, now, token=made.id)
    cache.forget()
    return api.NodeToken(node=new.name, secret=made.secret)


def _use_up(tx: Connection, caller: Caller, now: int) -> None:
    """Revoke the invitation, or refuse: of two machines that come at once one gets in."""
    used = update(Token).where(Token.id == caller.token_id, Token.revoked_us.is_(None)).values(revoked_us=now)
    if tx.execute(used).rowcount != 1:
        raise ProblemError(
            "unauthorized",
            TranslatableText("invitation-used", "This invitation was used already: ask for a new one."),
        )
