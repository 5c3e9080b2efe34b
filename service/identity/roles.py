"""Roles: what the caller may change in a project, and the refusals that name the role.

A member's role in a project takes the place of their role on the installation there; who uses a token with the scope
admin is an administrator everywhere. Reading is decided by `service.identity.visibility`.
"""

from service.errors import ProblemError
from service.identity.callers import Caller
from service.identity.visibility import Owned
from torchyard.api import Role, Submitters
from torchyard.translatable import TranslatableText


def role_in(caller: Caller, project: str) -> Role:
    """Return the caller's role in a project."""
    if caller.admin:
        return "administrator"
    elsewhere: Role = "viewer" if caller.role == "viewer" else "member"
    return caller.roles.get(project, elsewhere)


def may_submit(caller: Caller, project: str, submitters: Submitters) -> None:
    """Raise ``forbidden`` if the caller is a viewer in the project, or no member where only members submit."""
    if role_in(caller, project) == "viewer":
        raise _viewer(caller, project)
    if is_closed(caller, project, submitters):
        raise ProblemError(
            "forbidden",
            TranslatableText(
                "members-only",
                "project: only its members submit to {project}, and {user} is none: take another one, or ask an "
                "administrator for `yard projects members add {project} {user}`.",
                project=project,
                user=caller.name,
            ),
        )


def is_closed(caller: Caller, project: str, submitters: Submitters) -> bool:
    """Return whether the project takes jobs of its members alone, and the caller is neither one nor administrator."""
    return submitters == "members" and not caller.admin and project not in caller.roles


def may_change(caller: Caller, owned: Owned) -> None:
    """Raise ``forbidden`` unless the caller administers the job's project, or owns it and is more than a viewer."""
    role = role_in(caller, owned.project)
    if role == "viewer":
        raise _viewer(caller, owned.project)
    if role != "administrator" and caller.user_id != owned.user_id:
        raise ProblemError(
            "forbidden",
            TranslatableText(
                "other-users-job",
                "This job is another user's: only its owner or an administrator, of all or of its project, may "
                "change it.",
            ),
        )


def may_administer(caller: Caller, project: str) -> None:
    """Raise ``forbidden`` unless the caller administers the project."""
    role = role_in(caller, project)
    if role != "administrator":
        raise ProblemError(
            "forbidden",
            TranslatableText(
                "needs-administrator",
                "This needs the role administrator, of all or of project {project}; yours there is {role}.",
                project=project,
                role=role,
            ),
        )


def refuse_service_account(caller: Caller, what: TranslatableText) -> None:
    """Raise ``forbidden`` if a service account asks for what only people may do, such as ``makes no tokens``."""
    if caller.service_account:
        raise ProblemError(
            "forbidden",
            TranslatableText(
                "service-account-may-not",
                "{name} is a service account: it {what}; an administrator does.",
                name=caller.name,
                what=what,
            ),
        )


def missing_scope(caller: Caller, scope: str) -> ProblemError:
    """Return the refusal of a caller without a scope: their role has taken it, or the token never had it."""
    if caller.role == "viewer" and scope not in {"node", "join"}:
        return ProblemError(
            "forbidden",
            TranslatableText(
                "viewer",
                "{user} has the role viewer, which reads and changes nothing: an administrator changes that with "
                "`yard users set {user} --role member`.",
                user=caller.name,
            ),
        )
    has = ", ".join(sorted(caller.scopes)) or "none"
    return ProblemError(
        "forbidden",
        TranslatableText(
            "missing-scope", "This needs a token with the scope {scope}; this one has: {has}.", scope=scope, has=has
        ),
    )


def _viewer(caller: Caller, project: str) -> ProblemError:
    if caller.service_account:
        own = ", ".join(sorted(caller.roles))
        return ProblemError(
            "forbidden",
            TranslatableText(
                "viewer-service-account",
                "{name} is a service account of project {own}, with the role viewer in project {project}: it "
                "changes nothing there.",
                name=caller.name,
                own=own,
                project=project,
            ),
        )
    return ProblemError(
        "forbidden",
        TranslatableText(
            "project-viewer",
            "{user} has the role viewer in project {project}, which reads and changes nothing: an administrator "
            "changes that with `yard projects members add {project} {user} --role member`.",
            user=caller.name,
            project=project,
        ),
    )
