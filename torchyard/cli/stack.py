"""``up``, ``down``, ``doctor``, ``login``, ``dashboard``, ``service``, ``worker``, ``version``."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import torchyard
from torchyard.cli import common, config, extras, install

if TYPE_CHECKING:
    from torchyard.stack.up import StackOptions

PASS_ON = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(up)
    app.command()(down)
    app.command()(doctor)
    app.command()(login)
    app.command()(dashboard)
    app.command(context_settings=PASS_ON)(service)
    app.command(context_settings=PASS_ON)(worker)
    app.command()(version)


def up(
    host: Annotated[str | None, typer.Option(help="Address to listen on; 127.0.0.1 unless the settings say.")] = None,
    port: Annotated[
        int | None,
        typer.Option(help="Port to listen on; 8765 unless the settings say, and 0 takes a free one.", min=0, max=65535),
    ] = None,
    cpu_slots: Annotated[
        int | None, typer.Option(help="Offer CPU slots; the default where there is no GPU.", min=0)
    ] = None,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Return once jobs are accepted.")] = False,
    stop_jobs: Annotated[bool, typer.Option("--stop-jobs", help="At the end, cancel the running jobs too.")] = False,
    tls_cert: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Certificate with its chain, PEM; a renewed one needs no restart."),
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Key of the certificate, PEM, mode 0600.")
    ] = None,
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="A proxy in front ends TLS: needed to listen beyond this machine.")
    ] = False,
) -> None:
    """Start Redis, service and worker on this machine.

    Prints `ready URL` once jobs are accepted, and stays in the foreground. Ctrl-C ends it; trainings go on. What no
    option says is as the settings have it.
    """
    from torchyard.stack import up as stack

    if (tls_cert is None) != (tls_key is None):
        raise typer.BadParameter("give both, --tls-cert and --tls-key")
    extras.require("up", "box")
    said = {"host": host, "port": port, "behind_proxy": behind_proxy or None, "tls_cert": tls_cert, "tls_key": tls_key}
    options = stack_options(said, cpu_slots=cpu_slots, stop_jobs=stop_jobs)
    if detach:
        common.line(f"ready {stack.detach(options)}")
        common.note("`yard down` ends it, `yard login` opens the dashboard")
    else:
        stack.run(options)


def stack_options(said: Mapping[str, Any], *, cpu_slots: int | None, stop_jobs: bool) -> "StackOptions":
    """Return the options of a stack: what is said, where that is None the settings of the service."""
    from torchyard.stack.up import StackOptions

    settings = config.service_settings({name: value for name, value in said.items() if value is not None})
    return StackOptions(
        host=settings.host,
        port=settings.port,
        cpu_slots=cpu_slots,
        stop_jobs=stop_jobs,
        behind_proxy=settings.behind_proxy,
        tls_cert=settings.tls_cert,
        tls_key=settings.tls_key,
        local_port=settings.local_port,
        redis_url=settings.redis_url if "redis_url" in settings.model_fields_set else None,
    )


def down(
    stop_jobs: Annotated[bool, typer.Option("--stop-jobs", help="Cancel the running jobs first.")] = False,
) -> None:
    """End the stack of this machine; trainings go on.

    With --stop-jobs, running jobs save their work and are cancelled first; `yard rerun` goes on from it. `yard nodes
    --drain NODE --stop-jobs` has them wait instead.
    """
    from torchyard.stack import up as stack

    if not stack.down(stop_jobs=stop_jobs):
        common.note("no stack is running")
        return
    common.note("stopped" if stop_jobs else "stopped; jobs that run go on, and the next `yard up` takes them up")


def doctor(json: common.Json = False) -> None:
    """Check this machine's stack: modes, owners, accounts, settings, units and whether they run, disk.

    Prints each finding with its mend. Exits with 1 if there is one.
    """
    from torchyard import home
    from torchyard.stack import doctor as checks
    from torchyard.stack import install as installation
    from torchyard.stack import systemd

    root, worker_folder, plan = home.root(), home.worker_folder(), install.plan()
    installed = installation.is_installed(plan)
    owner = installation.owner_of(plan, root) if installed else None
    stores, floors, own_redis = config.stores(), config.floors(), config.starts_redis()
    found = checks.findings(root, worker_folder, owner, stores, floors, own_redis=own_redis)
    found += checks.without_told(config.findings(), found)
    if installed:
        found += [each for each in installation.findings(plan) if each not in found]
        found += systemd.findings([unit.path.name for unit in plan.units], own=os.geteuid() != 0)
    if json:
        common.print_json({"findings": found})
    else:
        for words in checks.words(root, worker_folder, installed=installed and os.geteuid() == 0):
            common.note(words)
        for finding in found:
            common.line(finding)
        common.note(f"{len(found)} to mend" if found else "nothing to mend")
    if found:
        raise typer.Exit(1)


def login(
    unix: Annotated[bool, typer.Option("--unix", help="Sign in anew by UNIX account.")] = False,
    json: common.Json = False,
) -> None:
    """Print a link that opens the dashboard, once.

    Where there is no token yet, sign in by this UNIX account first: the service on this machine gives one if its
    administrator allows it.
    """
    if unix or not _has_token():
        from torchyard.client import unix_sign_in

        signed_in = unix_sign_in.sign_in(unix_sign_in.socket_path())
        common.note(f"signed in at {signed_in.url} as {signed_in.user}")
    dashboard(json=json)


def _has_token() -> bool:
    from torchyard.client.connection import find_token
    from torchyard.exceptions import NoTokenError, NotRunningError

    try:
        find_token()
    except (NoTokenError, NotRunningError):
        return False
    return True


def dashboard(
    browser: Annotated[bool, typer.Option("--open", help="Open it in the browser of this machine.")] = False,
    json: common.Json = False,
) -> None:
    """Print a link that opens the dashboard, once and within five minutes."""
    with common.connect() as client:
        link = client.login_link()
    if json:
        common.print_json({"url": link})
    else:
        common.line(link)
    if browser:
        import webbrowser

        webbrowser.open(link)


def service(context: typer.Context) -> None:
    """Run the service alone; its own --help tells more."""
    extras.require("service", "service")
    os.execv(sys.executable, [sys.executable, "-P", "-m", "service", *context.args])  # noqa: S606


def worker(context: typer.Context) -> None:
    """Run a node's worker: `yard worker --join URL`; `yard nodes --invite` tells its first command."""
    extras.require("worker", "worker")
    os.execv(sys.executable, [sys.executable, "-P", "-m", "worker", *context.args])  # noqa: S606


def version(json: common.Json = False) -> None:
    """Print the version."""
    if json:
        common.print_json({"version": torchyard.__version__})
    else:
        common.line(torchyard.__version__)
