"""Users, projects, tokens and sessions as the REST API shows and takes them."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field

from torchyard.api.base import Resource, Text
from torchyard.api.problems import Sentence
from torchyard.control_characters import check_name
from torchyard.quantities import Duration
from torchyard.spec.base import NAME

Scope = Literal["read", "submit", "admin", "node"]
#: What a user may do, on the installation or within a project: everything, work of their own, or reading alone.
Role = Literal["administrator", "member", "viewer"]
#: Users as whom UNIX accounts of the machine sign in: also new ones, those that there are, or none.
UnixSignIn = Literal["create", "existing", "off"]
#: Who may read the jobs of a project beside their owners and administrators: nobody, its members, or every user.
Visibility = Literal["private", "project", "everyone"]
#: Who may submit jobs to a project beside its administrators: everyone but viewers, or its members alone.
Submitters = Literal["everyone", "members"]


class User(Resource):
    id: str
    """Their id."""
    name: str
    """Their name."""
    admin: bool
    """Whether they administer the installation."""
    unix_user: str | None
    """The UNIX account as which their jobs run where the worker runs as root; null: none."""
    created_at: datetime
    """When they were added."""
    active: bool = True
    """Whether they may sign in; if not, all tokens have ended, while jobs and usage stay."""
    warning: str | None = None
    """Why nodes would not run this user's jobs, with the mend."""
    warning_sentence: Sentence | None = None
    """`warning`, with what it is made of; null: there is none, or the service is older."""
    role: Role = "member"
    """What they may do where no project says otherwise; `admin` is true of administrators."""
    project: str | None = None
    """The project of a service account, which reaches no other and signs in nowhere; null: a person."""
    last_seen_at: datetime | None = None
    """When a token or session of theirs was last used, to some five minutes; in lists for administrators alone."""


class Token(Resource):
    id: str
    """Its id."""
    user: str
    """The user whose token it is."""
    name: str
    """What it is for."""
    scopes: list[str]
    """What requests with it may do."""
    node: str | None
    """The node that it belongs to; null: none."""
    created_at: datetime
    """When it was made."""
    expires_at: datetime | None
    """When it no longer counts; null: once it is revoked."""
    last_used_at: datetime | None
    """When it was last used, to some five minutes; null: never."""
    session: bool = False
    """It is a browser that is signed in: revoked it is signed out, and it cannot be rotated."""


class NewToken(Token):
    """The only answer that ever shows the secret."""

    secret: str
    """What requests carry: ``Authorization: Bearer …``."""


class NewUser(Resource):
    """``POST /users``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=f"^{NAME}$")]
    """Name of the user."""
    admin: bool = False
    """Whether they administer the installation."""
    unix_user: Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_-]{0,31}$")] | None = None
    """The account as which this user's jobs run where the worker runs as root."""
    role: Role | None = None
    """What they may do where no project says otherwise; absent: administrator with `admin`, else member."""
    project: Annotated[str, Field(pattern=f"^{NAME}$")] | None = None
    """Makes it a service account of this project, a member of it until said otherwise."""


class TokenRequest(Resource):
    """``POST /tokens``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[Text, Field(min_length=1, max_length=100), AfterValidator(check_name)]
    """What it is for."""
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=4)]
    """What requests with it may do."""
    user: Text | None = None
    """Name of another user whose token it is; only by administrators."""
    node: Annotated[str, Field(pattern=f"^{NAME}$")] | None = None
    """The node that a token of the scope node belongs to."""
    expires_in: Duration | None = None
    """After this long it no longer counts; absent: until it is revoked."""


class NewProject(Resource):
    """``POST /projects``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=f"^{NAME}$")]
    """Name of the project."""
    visibility: Visibility | None = None
    """Who may read its jobs; absent: as the installation has it."""
    submitters: Submitters = "everyone"
    """Who may submit jobs to it."""
    restarts: bool = True
    """Its jobs that cannot be stopped may be put back after a short trial, to start from the beginning."""


class ProjectChanges(Resource):
    """``PATCH /projects/{name}``: fields that are absent stay as they are."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    visibility: Visibility | None = None
    """Who may read its jobs; null: as the installation has it."""
    submitters: Submitters = "everyone"
    """Who may submit jobs to it; what waits or runs stays as it is."""
    restarts: bool = True
    """Its jobs that cannot be stopped may be put back after a short trial, to start from the beginning; false holds for
    jobs that wait or run, too, but not for those whose specs say `restartable: true`."""


class ProjectRole(Resource):
    """``PUT /projects/{name}/members/{user}``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    role: Role = "member"
    """What the member may do in the project, in place of their role on the installation."""


class TokenRotation(Resource):
    """``POST /tokens/{token}/rotate``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    grace: Duration | None = None
    """So long the old token still counts; absent: it ends at once."""


class SignIn(Resource):
    """``POST /session``: a token or a one-time code, one of them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    token: str | None = None
    """A token's secret."""
    code: str | None = None
    """A one-time code."""


class SignInWays(Resource):
    """``GET /session/ways``."""

    oidc: str | None = None
    """The provider of OpenID Connect; null: there is none."""


class SignInCode(Resource):
    """Opens one session, as its maker or as the user that it was made for: ``<url>/#login=<code>``."""

    code: str
    """The code."""
    expires_at: datetime
    """When it no longer counts."""


class AuditEntry(Resource):
    """Entry of the audit: a change that was made, or a request for one that was refused."""

    id: str
    """Its id."""
    at: datetime
    """When it happened."""
    user: str
    """Who did it; ``(unknown)``: a request without a valid token."""
    action: str
    """What was done, such as `job.cancel`."""
    subject: str
    """What it was done to, by id or name."""
    data: dict[str, Any]
    """Details of the action."""
    address: str | None = None
    """Where the request came from."""
    result: Literal["done", "refused"] = "done"
    """Whether it was done or refused."""
    status: int | None = None
    """HTTP status of the refusal."""
    times: int = 1
    """How often the same was refused within a minute."""


class Project(Resource):
    name: str
    """Its name."""
    created_at: datetime
    """When it was added."""
    visibility: Visibility = "project"
    """Who may read its jobs."""
    members: list[str] = []
    """Names of its members."""
    roles: dict[str, Role] = {}
    """The members' roles in it, by name."""
    submitters: Submitters = "everyone"
    """Who may submit jobs to it."""
    restarts: bool = True
    """Its jobs that cannot be stopped may be put back after a short trial, to start from the beginning."""


class Settings(Resource):
    """The facts of the installation, and of who is looking, that the dashboard needs."""

    version: str
    """Version of the service."""
    installation: str
    """Id of the installation."""
    user: User
    """Who is looking."""
    scopes: list[str]
    """What the token in use may do."""
    keep_ended_s: int | None = None
    """Seconds after its end for which a job's files are kept, unless it has the tag `keep`; null: for ever."""
    roles: dict[str, Role] = {}
    """The user's roles in projects that they are a member of."""
    closed_projects: list[str] = []
    """Projects to which only their members may submit, and the user is none."""
    shared_links: bool = False
    """Whether there are public links to jobs."""
