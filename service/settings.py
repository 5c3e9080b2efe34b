"""Settings of the service, from ``TORCHYARD_*`` variables and the settings file."""

import ipaddress
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from service import tls
from torchyard import home, settingsfile
from torchyard.api import Role, UnixSignIn, Visibility
from torchyard.injob.cadence import FLOOR
from torchyard.quantities import SECONDS, parse_duration, parse_size
from torchyard.settingsfile import AT_ONCE, Changes


@dataclass(kw_only=True)
class ServiceSettings:
    """Places, addresses and time-outs (in seconds) of one service; those marked `AT_ONCE` change while it runs."""

    data: Path
    """Folder of the database (SQLite), the artifacts and the secrets' key; services on one database share it."""
    database_url: str
    broker_url: str
    host: str = "127.0.0.1"
    port: int = 8765
    allowed_hosts: tuple[str, ...] = ("127.0.0.1", "localhost", "[::1]")
    """Host headers that are answered."""
    tls_cert: Path | None = None
    """Certificate with its chain, PEM; with it `host` and `port` speak TLS, and programs on this machine have a port of
    their own on loopback (`local_port`)."""
    tls_key: Path | None = None
    local_port: int = 0
    behind_proxy: bool = False
    """A proxy in front ends TLS; needed to bind beyond loopback."""
    heartbeat_s: float = 5.0
    unreachable_after_s: float = 60.0
    """Silence after which a node counts as unreachable."""
    republish_after_s: float = 2.0
    """An attempt that stays ASSIGNED is nudged again after this long."""
    unclaimed_after_s: float = 120.0
    """An attempt that nobody claims is voided after this long."""
    unprepared_after_s: float = 1800.0
    """An attempt on several nodes is voided after this long, unless all of them are prepared."""
    disk_floor: int = FLOOR
    """Free bytes below which nothing is launched: on a node, or anywhere if it is the service's own disk."""
    max_body: int = 2**20
    """Bytes of a request body outside uploads and ingest."""
    streams_per_user: int = 100
    """Streams of events that a user may have open: pages of the dashboard, followed logs."""
    visibility: Visibility = "project"
    """Who may read the jobs of projects that do not say it themselves."""
    shared_links: bool = False
    """Whether there are public links to jobs."""
    idle_limit_s: int | None = None
    """So long may GPUs of a job without an `idle_limit` do nothing; None: for ever."""
    oidc_issuer: str | None = None
    """Provider of OpenID Connect; None: nobody signs in by it."""
    oidc_client_id: str = "torchyard"
    oidc_secret_file: Path | None = None
    """File of the client's secret; None: it has none."""
    oidc_claim: str = "preferred_username"
    """Claim that names the user."""
    oidc_create: bool = False
    """Somebody without a user becomes a member."""
    oidc_scopes: str = "openid profile email"
    oidc_groups_claim: str = "groups"
    """Claim whose value are somebody's groups."""
    oidc_roles: tuple[tuple[str, Role], ...] = ()
    """Groups of the provider with their roles; empty: it says nothing of roles."""
    oidc_contact: str | None = None
    """Whom somebody asks whose sign-in is refused."""
    sign_in_socket: Path | None = None
    """Local socket for sign-in by UNIX account; None: there is no such sign-in."""
    unix_sign_in: UnixSignIn = "existing"
    unix_administrators: tuple[str, ...] = ()
    """UNIX accounts that sign in with the rights of an administrator, if their user is one."""
    secret_key_file: Path | None = None
    """File of the key that secrets are encrypted with; None: in `data`."""
    otlp_endpoint: str | None = None
    """Collector of OpenTelemetry that the starts of attempts are sent to; None: none is."""
    keep_audit_s: int = 365 * SECONDS["d"]
    """So long entries of the audit stay, a day at least."""
    keep_ended_s: int | None = None
    """So long after its end a job keeps its files (`service.artifacts.discard`), a day at least; None: for ever."""
    given: "ServiceEnvironment" = field(
        default_factory=lambda: ServiceEnvironment.model_construct(),  # noqa: PLW0108  the class comes below
        repr=False,
    )
    """Options, variables and file, of which these are made."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Settings that options of the command line say."""

    @property
    def artifacts(self) -> Path:
        """Blobs, the inbox, and logs."""
        return self.data / "artifacts"

    @property
    def secret_key(self) -> Path:
        """File of the key that secrets are encrypted with."""
        return self.secret_key_file or self.data / "secrets.key"

    def take_over(self, fresh: "ServiceSettings") -> Changes:
        """Take over what counts at once; return what differs."""
        found = settingsfile.changes(self.given, fresh.given)
        before, after = (
            self._of(each, self.options) for each in (self.given, settingsfile.merged(self.given, fresh.given))
        )
        for name in (each.name for each in fields(self)):
            if getattr(before, name) != getattr(after, name):
                setattr(self, name, getattr(after, name))
        return found

    def problems(self) -> Iterator[str]:
        """Yield what contradicts itself or lies open, each with its mend; where it is wrong alone, it is not read."""
        if not is_loopback(self.host) and not self.behind_proxy and self.tls_cert is None:
            yield f"host: {self.host} would send tokens unencrypted: set tls_cert and tls_key, or behind_proxy"
        if self.behind_proxy and self.tls_cert is not None:
            yield "behind_proxy: either a proxy ends TLS or the service does, by tls_cert: unset one"
        if (problem := tls.problem(self.tls_cert, self.tls_key)) is not None:
            yield problem
        if self.unreachable_after_s < 3 * self.heartbeat_s:
            yield (
                f"unreachable_after_s: {self.unreachable_after_s:g} s is less than three heartbeats of "
                f"{self.heartbeat_s:g} s: nodes would count as unreachable for a message that is late"
            )
        if self.secret_key_file is not None and not self.secret_key_file.parent.is_dir():
            yield f"secret_key_file: there is no folder {self.secret_key_file.parent}: make it, mode 0700"
        for name, file in (("settings file", settingsfile.path()), ("secret_key_file", self.secret_key)):
            yield from _too_open(name, file)

    @classmethod
    def from_environment(cls, options: Mapping[str, Any] | None = None) -> "ServiceSettings":
        """Load the settings of this process: options first; defaults are those of the embedded stack.

        ValueError for a variable that cannot be read.
        """
        return cls._of(read().model_copy(update=options), options or {})

    @classmethod
    def _of(cls, found: "ServiceEnvironment", options: Mapping[str, Any]) -> "ServiceSettings":
        data = found.data.absolute() if found.data else home.root() / "service"
        return cls(
            data=data,
            given=found,
            options=options,
            database_url=found.database_url or f"sqlite:///{data / 'torchyard.db'}",
            broker_url=found.redis_url,
            host=found.host,
            port=found.port,
            allowed_hosts=cls.allowed_hosts + found.allowed_hosts,
            tls_cert=found.tls_cert,
            tls_key=found.tls_key,
            local_port=found.local_port,
            behind_proxy=found.behind_proxy,
            heartbeat_s=found.heartbeat_s,
            unreachable_after_s=found.unreachable_after_s,
            disk_floor=found.disk_floor,
            streams_per_user=found.streams_per_user,
            keep_audit_s=found.keep_audit,
            keep_ended_s=found.keep_ended,
            visibility=found.visibility,
            oidc_issuer=found.oidc_issuer,
            oidc_client_id=found.oidc_client_id,
            oidc_secret_file=found.oidc_secret_file,
            oidc_claim=found.oidc_claim,
            oidc_create=found.oidc_create,
            oidc_scopes=found.oidc_scopes,
            oidc_groups_claim=found.oidc_groups_claim,
            oidc_roles=found.oidc_roles,
            oidc_contact=found.oidc_contact,
            sign_in_socket=found.sign_in_socket,
            unix_sign_in=found.unix_sign_in,
            unix_administrators=found.unix_administrators,
            secret_key_file=found.secret_key_file,
            shared_links=found.shared_links,
            idle_limit_s=found.idle_limit,
            otlp_endpoint=found.otlp_endpoint,
        )


def read() -> "ServiceEnvironment":
    """Read variables and file; ValueError for what cannot be read."""
    return settingsfile.from_environment(ServiceEnvironment, "service")


def problems() -> Iterator[str]:
    """Yield what is wrong with the settings of this process, each with its mend."""
    try:
        yield from ServiceSettings.from_environment().problems()
    except ValueError as error:
        yield from str(error).splitlines()


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _too_open(name: str, file: Path | None) -> Iterator[str]:
    if file is None or not file.is_file():
        return
    mode = stat.S_IMODE(file.stat().st_mode)
    # Only an address may hold a password; without one, everybody may read them.
    secret = name != "settings file" or "://" in file.read_text()
    if mode & (0o077 if secret else 0o022):
        yield f"{name}: {file} (mode {mode:04o}) is open to other accounts: `chmod 0600 {file}`"


def _yaml_off(value: object) -> object:
    """Return the word that YAML reads as false."""
    return "off" if value is False else value


def _days(text: object) -> int:
    seconds = parse_duration(text)
    if seconds < SECONDS["d"]:
        raise ValueError(f"{text} is less than a day: say how long, such as 90d")
    return seconds


def _group_roles(value: object) -> tuple[tuple[str, str], ...]:
    """Read ``GROUP=ROLE`` between commas, or a mapping; a group's name may hold ``=``, a role does not."""
    if isinstance(value, dict):
        return tuple((str(group), str(role)) for group, role in value.items())
    pairs = [each.rpartition("=") for each in settingsfile.words(value)]
    if wrong := [group or role for group, equals, role in pairs if not (equals and group)]:
        raise ValueError(f"{wrong[0]!r} names no group and role: write GROUP=ROLE, such as ml=member")
    return tuple((group.strip(), role.strip()) for group, _, role in pairs)


class ServiceEnvironment(BaseSettings):
    """Variables of the service, each named ``TORCHYARD_`` and its field; an empty one counts as absent."""

    model_config = SettingsConfigDict(env_prefix=settingsfile.PREFIX, env_ignore_empty=True, validate_default=False)

    database_url: str | None = Field(
        default=None, description="Database; without it an SQLite file in `TORCHYARD_HOME`."
    )
    data: Path | None = Field(
        default=None,
        description="Folder of what is stored: artifacts, the key of secrets, SQLite's database. Replicas share it. "
        "Without it `service` in `TORCHYARD_HOME`.",
    )
    redis_url: str = Field(
        default="redis://127.0.0.1:6379/0", description="Redis; `yard up` starts its own where this is not set."
    )
    host: str = Field(default=ServiceSettings.host, description="Address to listen on.")
    port: int = Field(default=ServiceSettings.port, description="Port to listen on; 0 takes a free one.")
    allowed_hosts: Annotated[tuple[str, ...], NoDecode, BeforeValidator(settingsfile.words)] = Field(
        default=(), description="Names by which clients reach the service, between commas, beside this machine's own."
    )
    tls_cert: Path | None = Field(
        default=ServiceSettings.tls_cert,
        description="Certificate with its chain (PEM); a renewed one needs no restart.",
    )
    tls_key: Path | None = Field(
        default=ServiceSettings.tls_key, description="Key of the certificate (PEM), mode 0600."
    )
    local_port: int = Field(
        default=ServiceSettings.local_port,
        description="With a certificate: port on 127.0.0.1 for this machine's programs, without TLS; 0: a free one.",
    )
    behind_proxy: bool = Field(
        default=ServiceSettings.behind_proxy,
        description="A proxy in front ends TLS; needed to listen beyond this machine.",
    )
    heartbeat_s: float = Field(default=ServiceSettings.heartbeat_s, description="Seconds between a node's heartbeats.")
    unreachable_after_s: float = Field(
        json_schema_extra=AT_ONCE,
        default=ServiceSettings.unreachable_after_s,
        description="Seconds of silence after which a node counts as unreachable.",
    )
    disk_floor: Annotated[int, BeforeValidator(parse_size)] = Field(
        json_schema_extra=AT_ONCE,
        default=ServiceSettings.disk_floor,
        description="Free disk below which nothing is launched, such as `2GiB`; nodes are told.",
    )
    oidc_issuer: str | None = Field(
        json_schema_extra=AT_ONCE,
        default=None,
        description="Provider of OpenID Connect by which people sign in to the dashboard, such as "
        "`https://login.example`; its redirect address is `/api/v1/session/oidc/callback` of this service.",
    )
    oidc_client_id: str = Field(
        default=ServiceSettings.oidc_client_id,
        description="Name of this installation there.",
        json_schema_extra=AT_ONCE,
    )
    oidc_secret_file: Path | None = Field(
        default=None, description="File of the secret that the provider gave for it.", json_schema_extra=AT_ONCE
    )
    oidc_claim: str = Field(
        json_schema_extra=AT_ONCE,
        default=ServiceSettings.oidc_claim,
        description="Claim whose value is the user's name here; take one that people cannot change at the provider.",
    )
    oidc_create: bool = Field(
        json_schema_extra=AT_ONCE,
        default=ServiceSettings.oidc_create,
        description="Whoever the provider knows becomes a member; else only users sign in.",
    )
    oidc_scopes: str = Field(
        json_schema_extra=AT_ONCE,
        default=ServiceSettings.oidc_scopes,
        description="Scopes that are asked for, with blanks between; some providers tell groups only for `groups`.",
    )
    oidc_groups_claim: str = Field(
        json_schema_extra=AT_ONCE,
        default=ServiceSettings.oidc_groups_claim,
        description="Claim of the ID token whose value are the groups.",
    )
    oidc_roles: Annotated[tuple[tuple[str, Role], ...], NoDecode, BeforeValidator(_group_roles)] = Field(
        json_schema_extra=AT_ONCE,
        default=(),
        description="Roles of the provider's groups, between commas, such as `leads=administrator,ml=member`. With it "
        "each sign-in sets the user's role, and who is in none of the groups does not sign in.",
    )
    oidc_contact: str | None = Field(
        json_schema_extra=AT_ONCE,
        default=None,
        description="Whom somebody is to ask whose sign-in is refused, such as `gpu-help@example.org`.",
    )
    sign_in_socket: Path | None = Field(
        default=None,
        description="Local socket at which accounts of this machine sign in (`yard login`), such as "
        "`/run/torchyard/sign-in.sock`; without it none do.",
    )
    unix_sign_in: Annotated[UnixSignIn, BeforeValidator(_yaml_off)] = Field(
        json_schema_extra=AT_ONCE,
        default=ServiceSettings.unix_sign_in,
        description="Who may sign in there: `existing` users, `create` those of accounts of people that have none, or "
        "`off`. Existing ones alone by default, so that an account on the machine is no leave to use its GPUs.",
    )
    unix_administrators: Annotated[tuple[str, ...], NoDecode, BeforeValidator(settingsfile.words)] = Field(
        json_schema_extra=AT_ONCE,
        default=(),
        description="UNIX accounts, between commas, that sign in with an administrator's rights if their user is one; "
        "root signs in only if it is among them. Whatever runs as such an account, its jobs too, can administer.",
    )
    keep_audit: Annotated[int, BeforeValidator(_days)] = Field(
        json_schema_extra=AT_ONCE,
        default=ServiceSettings.keep_audit_s,
        description="How long the audit remembers changes and refusals, such as `365d`; a day at least.",
    )
    keep_ended: Annotated[int, BeforeValidator(_days)] | None = Field(
        json_schema_extra=AT_ONCE,
        default=ServiceSettings.keep_ended_s,
        description="How long jobs keep their files after their end, such as `90d`; without it for ever.",
    )
    streams_per_user: int = Field(
        json_schema_extra=AT_ONCE,
        default=ServiceSettings.streams_per_user,
        ge=1,
        description="Streams of events that a user may have open: pages of the dashboard, followed logs.",
    )
    visibility: Visibility = Field(
        json_schema_extra=AT_ONCE,
        default=ServiceSettings.visibility,
        description="Who may read jobs of projects that do not say it themselves, beside owners and administrators: "
        "`private` nobody, `project` the project's members, `everyone` every user.",
    )
    shared_links: bool = Field(
        json_schema_extra=AT_ONCE,
        default=ServiceSettings.shared_links,
        description="Whether owners and administrators of jobs may make public links to them: whoever has one sees "
        "name, state, times and metrics without signing in. Never of jobs in `private` projects.",
    )
    idle_limit: Annotated[int, BeforeValidator(parse_duration), Field(gt=0)] | None = Field(
        json_schema_extra=AT_ONCE,
        default=ServiceSettings.idle_limit_s,
        description="Time for which the GPUs of a job that sets no `idle_limit` may do nothing before it is stopped, "
        "such as `2h`; without it for ever.",
    )
    secret_key_file: Path | None = Field(
        default=None,
        description="File of the key that secrets are encrypted with, made with the first of them; without it "
        "`secrets.key` in the service's folder.",
    )
    otlp_endpoint: str | None = Field(
        default=None,
        pattern="^https?://",
        description="Collector of OpenTelemetry (OTLP over HTTP, JSON) that gets starts of attempts as spans, such as "
        "`http://127.0.0.1:4318`; without it none does.",
    )
