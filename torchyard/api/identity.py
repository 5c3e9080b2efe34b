"""Users, projects, tokens and sessions as the REST API shows and takes them."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field

from torchyard.api.base import Resource, Text
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
    name: str
    admin: bool
    unix_user: str | None
    created_at: datetime
    #: False: all tokens have ended; jobs and usage stay.
    active: bool = True
    #: Why nodes would not run this user's jobs, with the mend.
    warning: str | None = None
    #: What they may do where no project says otherwise; `admin` is true of administrators.
    role: Role = "member"
    #: The project of a service account, which reaches no other and signs in nowhere; null: a person.
    project: str | None = None
    #: When a token or session of theirs was last used, to some five minutes; in lists for administrators alone.
    last_seen_at: datetime | None = None


class Token(Resource):
    id: str
    user: str
    name: str
    scopes: list[str]
    node: str | None
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    #: It is a browser that is signed in: revoked it is signed out, and it cannot be rotated.
    session: bool = False


class NewToken(Token):
    """The only answer that ever shows the secret."""

    secret: str


class NewUser(Resource):
    """``POST /users``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=f"^{NAME}$")]
    admin: bool = False
    #: The account as which this user's jobs run where the worker runs as root.
    unix_user: Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_-]{0,31}$")] | None = None
    #: Absent: administrator with `admin`, else member.
    role: Role | None = None
    #: Makes it a service account of this project, a member of it until said otherwise.
    project: Annotated[str, Field(pattern=f"^{NAME}$")] | None = None


class TokenRequest(Resource):
    """``POST /tokens``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[Text, Field(min_length=1, max_length=100), AfterValidator(check_name)]
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=4)]
    #: Another user's name; only administrators.
    user: Text | None = None
    #: The node that a token of the scope node belongs to.
    node: Annotated[str, Field(pattern=f"^{NAME}$")] | None = None
    #: After this long it no longer counts; absent: until it is revoked.
    expires_in: Duration | None = None


class NewProject(Resource):
    """``POST /projects``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=f"^{NAME}$")]
    #: Absent: as the installation has it.
    visibility: Visibility | None = None
    #: Who may submit jobs to it.
    submitters: Submitters = "everyone"


class ProjectChanges(Resource):
    """``PATCH /projects/{name}``: fields that are absent stay as they are."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    #: Null: as the installation has it.
    visibility: Visibility | None = None
    #: Who may submit jobs to it; what waits or runs stays as it is.
    submitters: Submitters = "everyone"


class ProjectRole(Resource):
    """``PUT /projects/{name}/members/{user}``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    #: What the member may do in the project, in place of their role on the installation.
    role: Role = "member"


class TokenRotation(Resource):
    """``POST /tokens/{token}/rotate``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    #: So long the old token still counts; absent: it ends at once.
    grace: Duration | None = None


class SignIn(Resource):
    """``POST /session``: a token or a one-time code, one of them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    token: str | None = None
    code: str | None = None


class SignInWays(Resource):
    """``GET /session/ways``."""

    #: The provider of OpenID Connect; null: there is none.
    oidc: str | None = None


class SignInCode(Resource):
    """Opens one session, as its maker or as the user that it was made for: ``<url>/#login=<code>``."""

    code: str
    expires_at: datetime


class AuditEntry(Resource):
    """Entry of the audit: a change that was made, or a request for one that was refused."""

    id: str
    at: datetime
    user: str
    action: str
    subject: str
    data: dict[str, Any]
    #: Where the request came from.
    address: str | None = None
    result: Literal["done", "refused"] = "done"
    #: HTTP status of the refusal.
    status: int | None = None
    #: How often the same was refused within a minute.
    times: int = 1


class Project(Resource):
    name: str
    created_at: datetime
    #: Who may read its jobs.
    visibility: Visibility = "project"
    #: Names of its members.
    members: list[str] = []
    #: The members' roles in it, by name.
    roles: dict[str, Role] = {}
    #: Who may submit jobs to it.
    submitters: Submitters = "everyone"


class Settings(Resource):
    """What the dashboard needs to know of the installation and of who is looking."""

    version: str
    installation: str
    user: User
    scopes: list[str]
    #: Seconds after its end for which a job's files are kept, unless it has the tag `keep`; None: for ever.
    keep_ended_s: int | None = None
    #: The user's roles in projects that they are a member of.
    roles: dict[str, Role] = {}
    #: Projects to which only their members may submit, and the user is none.
    closed_projects: list[str] = []
