"""``run`` and ``submit``."""

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from torchyard.cli import common, notices

if TYPE_CHECKING:
    from torchyard.api import DryRun, Group, Job
    from torchyard.client.client import Client
    from torchyard.submission.drafts import Draft, PreparedSubmission

#: Exit code where the person leaves the job running: as after any Ctrl-C, so that `yard run … && next` goes no further.
LEFT = 130
#: The descriptor of standard input.
STDIN = 0
DRY_RUN = "Only check it, and tell when it would start."
WORDS = {"ignore_unknown_options": False, "allow_interspersed_args": False}

Name = Annotated[str | None, typer.Option("--name", help="Name in lists; default the folder's and the script's.")]
Priority = Annotated[str | None, typer.Option(help="low, normal, high or urgent.")]
TimeLimit = Annotated[str | None, typer.Option(help="Stop it after this running time, such as 4h.")]
After = Annotated[
    str | None, typer.Option(help="Start once these jobs or sweeps have succeeded: numbers or ids, such as 12,13.")
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command(context_settings=WORDS)(run)
    app.command()(submit)


def run(
    command: Annotated[list[str], typer.Argument(metavar="-- COMMAND", help="The program and its arguments.")],
    gpus: Annotated[
        str | None,
        typer.Option("--gpus", "-g", help="GPUs (or CPU slots) for the job alone; all: those of a node; default 1."),
    ] = None,
    name: Name = None,
    project: Annotated[str | None, typer.Option(help="The project whose share it uses.")] = None,
    priority: Priority = None,
    time_limit: TimeLimit = None,
    after: After = None,
    cpus: Annotated[int | None, typer.Option(help="CPU cores.", min=1)] = None,
    memory: Annotated[str | None, typer.Option(help="Main memory, such as 32GiB.")] = None,
    retries: Annotated[int | None, typer.Option(help="Start again so often after a failure.", min=0)] = None,
    resume_args: Annotated[
        str | None,
        typer.Option(
            help="Put behind the command when it goes on after a stop, such as '--resume {checkpoint}'; without "
            "{checkpoint} also where it finds files of its own."
        ),
    ] = None,
    launcher: Annotated[str | None, typer.Option(help="torchrun, launch, python or none; default auto.")] = None,
    network: Annotated[
        str | None, typer.Option(help="isolated: the job reaches nobody and nobody reaches it; default host.")
    ] = None,
    python: Annotated[
        str | None, typer.Option(help="venv, conda prefix or interpreter; default the active one.")
    ] = None,
    code: Annotated[Path, typer.Option(help="Folder to upload and run in.", file_okay=False)] = Path(),
    live: Annotated[bool, typer.Option("--live", help="Run in the folder itself, without a snapshot.")] = False,
    link: Annotated[
        list[str] | None, typer.Option(help="Folder or file that is not copied but joined in; repeatable.")
    ] = None,
    env: Annotated[list[str] | None, typer.Option(help="KEY=VALUE for the job; repeatable.")] = None,
    secret: Annotated[
        list[str] | None, typer.Option(help="A secret of yours or of the project that it gets; repeatable.")
    ] = None,
    no_warm_start: Annotated[
        bool, typer.Option("--no-warm-start", help="Execute each process; fork none that has PyTorch loaded.")
    ] = False,
    tag: Annotated[list[str] | None, typer.Option(help="Word to filter by; repeatable.")] = None,
    checkpoint_every: Annotated[
        str | None, typer.Option(help="Checkpoints are due this often, such as 10m; or never.")
    ] = None,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Submit, print the number, return.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help=DRY_RUN)] = False,
    json: common.Json = False,
) -> None:
    """Run a command on the box and follow it.

    Such as `yard run --gpus 2 -- python train.py --lr 0.1`; the folder is uploaded, the active venv is used.

    The exit code is the job's own; 130 when it was cancelled or left running, 124 when out of time, 125 when it could
    not be submitted. Ctrl-C leaves the job running, a second one cancels it.
    """
    from torchyard.submission import drafts

    resources = _given(gpus=None if gpus is None else number_or_all(gpus), cpus=cpus, memory=memory)
    fields = _given(
        name=name,
        project=project,
        priority=priority,
        time_limit=time_limit,
        max_retries=retries,
        resume=None if resume_args is None else {"args": _words(resume_args)},
        launcher=launcher,
        network=network,
        python=python,
        link=link,
        env=_environment(env or []),
        secrets=secret,
        warm_start=False if no_warm_start else None,
        tags=tag,
        checkpoint=_given(every=checkpoint_every) or None,
        after=_listed(after),
        live="." if live else None,
    )
    draft = drafts.from_words(command, code, resources=resources, **fields)
    with common.connect(patient=True) as client:
        if unread(STDIN):
            common.warn(
                "a job has no standard input: what is piped in here does not reach it; put it in a file of the code"
            )
        if dry_run:
            _check(client, draft, json)
        else:
            told(client, submitted(client, draft), detach=detach, json=json)


def submit(
    file: Annotated[Path, typer.Argument(help="The job spec, YAML or JSON.", dir_okay=False)],
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Change a field, such as resources.gpus=2; repeatable.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow it; the exit code is the job's.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help=DRY_RUN)] = False,
    after: After = None,
    json: common.Json = False,
) -> None:
    """Submit a job spec; prints the job's number, or the sweep's if it has one."""
    from torchyard.submission import drafts

    draft = drafts.from_file(file, set_ or ())
    draft.data.update(_given(after=_listed(after)))
    with common.connect(patient=True) as client:
        if dry_run:
            _check(client, draft, json)
        elif draft.data.get("sweep"):
            _tell_sweep(client, _submit_sweep(client, draft), detach=not follow, json=json)
        else:
            told(client, submitted(client, draft), detach=not follow, json=json)


def number_or_all(gpus: str) -> int | str:
    """Parse ``--gpus``; raises BadParameter for anything but a number and ``all``."""
    if gpus.isdecimal():
        return int(gpus)
    if gpus != "all":
        raise typer.BadParameter(f"--gpus {gpus}: give a number, or all for as many as a node has")
    return gpus


def unread(descriptor: int) -> bool:
    """Return whether a pipe or a file has bytes to read; what is typed into a terminal is for the shell."""
    import fcntl
    import termios

    try:
        waiting = fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4))
    except OSError:  # closed, or of no such kind, as /dev/null is
        return False
    return not os.isatty(descriptor) and int.from_bytes(waiting, sys.byteorder) > 0


def _words(line: str) -> list[str]:
    """Split ``--resume-args`` as a shell would; raises BadParameter for a quote without its end."""
    try:
        return shlex.split(line)
    except ValueError as error:
        raise typer.BadParameter(f"--resume-args {line}: {error}") from error


def _listed(refs: str | None) -> list[str] | None:
    """Numbers and ids between commas."""
    return None if refs is None else [ref.strip() for ref in refs.split(",") if ref.strip()]


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _environment(pairs: list[str]) -> dict[str, str] | None:
    from torchyard.exceptions import SpecError

    for pair in pairs:
        if "=" not in pair:
            raise SpecError(f"--env {pair}: write KEY=VALUE")
    return dict(pair.split("=", 1) for pair in pairs) or None


def _prepare(client: "Client", draft: "Draft") -> "PreparedSubmission":
    from torchyard.submission import drafts

    if drafts.wants_all(draft):
        gpus = client.all_gpus(draft.data)
        common.note(f"gpus: all is {gpus} here")
        drafts.override(draft.data, f"resources.gpus={gpus}")
    prepared = drafts.prepare(draft)
    notices.show(client)
    for warning in (*prepared.warnings, *_absent_python(client, prepared.spec.python)):
        common.warn(warning)
    return prepared


def _absent_python(client: "Client", python: str | None) -> list[str]:
    """Return the warning that the job's Python is missing, where the service is on this machine, as its node may be."""
    from torchyard.analysis import interpreters

    warning = interpreters.absent(python) if python is not None and client.connection.is_loopback else None
    return [] if warning is None else [warning]


def submitted(client: "Client", draft: "Draft") -> "Job":
    """Submit a draft, with its warnings told."""
    from torchyard.cli.transfer import progress

    prepared = _prepare(client, draft)
    with progress(prepared.code.size if prepared.code else 0, "code") as uploaded:
        job = prepared.submit(client, uploaded=uploaded)
    tell_advice(client, job)
    return job


def tell_advice(client: "Client", job: "Job") -> None:
    """Tell what the service advises on the GPU memory that a new job asks for, and that its project is new."""
    from torchyard.api.sweeps import NoteCode

    resources = job.spec.get("resources", {}) if job.spec else {}
    if resources.get("gpu_share") or resources.get("gpu_memory_min") or job.project != "default":
        for event in client.events(str(job.number))[:1]:
            told = [note["message"] for note in event.data.get("notes", ()) if note["code"] == NoteCode.NEW_PROJECT]
            for words in filter(None, (*told, event.data.get("advice"))):
                common.note(words)


def _submit_sweep(client: "Client", draft: "Draft") -> "Group":
    from torchyard.cli.transfer import progress

    prepared = _prepare(client, draft)
    with progress(prepared.code.size if prepared.code else 0, "code") as uploaded:
        group = prepared.submit_sweep(client, uploaded=uploaded)
    if group.project != "default":
        tell_advice(client, client.job(str(group.number + 1)))
    return group


def _tell_sweep(client: "Client", group: "Group", *, detach: bool, json: bool) -> None:
    from torchyard.cli import sweeps

    if not detach:
        sweeps.wait_and_tell(client, str(group.number), timeout_s=None, json=json)
    elif json:
        common.print_json(group)
    else:
        common.note(f"sweep {group.number}: {group.size} jobs, numbers {group.number + 1} and following")
        common.line(group.number)


def _check(client: "Client", draft: "Draft", json: bool) -> None:
    checked = client.check(_prepare(client, draft).spec, analysed=True)
    if json:
        common.print_json(checked)
    else:
        each = f"{checked.trials} jobs, each of " if checked.trials else ""
        processes = "1 process" if checked.world_size == 1 else f"{checked.world_size} processes"
        common.note(f"the spec is fine: {each}{processes}. {checked.note}".strip())
        if checked.start is not None:
            from torchyard.cli.format import message

            where = f"it is at place {checked.start.position}: {message(checked.start.reason)}"
            common.note(f"submitted now, {where}")
        _show_trials(checked)


def _show_trials(checked: "DryRun") -> None:
    for trial in checked.first_trials:
        values = " ".join(f"{name}={value}" for name, value in trial.parameters.items())
        common.note(f"  {trial.name}  {values}")
    if left := (checked.trials or 0) - len(checked.first_trials):
        common.note(f"  and {left} more")


def told(client: "Client", job: "Job", *, detach: bool, json: bool) -> None:
    """Follow the job, unless it is to be left alone, and exit with the job's code."""
    if detach:
        if json:
            common.print_json(job)
        else:
            common.line(job.number)
        return
    from torchyard.cli.follow import follow

    ended = follow(client, job, beside=json)
    if json:
        common.print_json(ended)
    raise typer.Exit(common.exit_code(ended) if ended.ended_at else LEFT)
