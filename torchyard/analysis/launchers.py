"""Choice of a launcher for `launcher: auto`, made once, when a job is submitted, from its command and its code.

The client decides where it has the code, the service for everything that reaches it undecided. A script that surely
starts its processes itself runs as one Python process; whatever is in doubt keeps torchrun.
"""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath

from torchyard.analysis import commands, launch_commands
from torchyard.analysis.scripts import facts, source
from torchyard.analysis.scripts.facts import ProgramFacts
from torchyard.spec import JobSpec, Launcher
from torchyard.translatable import TranslatableText


class LauncherReasonCode(StrEnum):
    """Reasons for a launcher that are known."""

    #: The script starts the processes itself; the subject is where.
    STARTS_ITSELF = "starts-itself"
    #: The job's Python has no torch, and its script imports none.
    NO_TORCH = "no-torch"
    #: The script takes its rank by an option, the subject.
    TAKES_RANK = "takes-rank"
    #: The command names it by words that are left out, the subject.
    LEFT_OUT = "left-out"


class LauncherReason(TranslatableText):
    """Reason for a launcher; the dashboard has its words among those of notes, not of refusals."""


@dataclass(frozen=True, kw_only=True)
class LauncherChoice:
    """Launcher of a command, and the reason for it."""

    launcher: Launcher
    command: tuple[str, ...]
    reason: LauncherReason | None = None
    """Why it is not what one would expect; None otherwise."""
    mismatch: str = ""
    """What the command asks for and the spec does not, with the mend; empty if nothing."""

    def applied(self, spec: JobSpec) -> JobSpec:
        """The spec as it is stored."""
        command = None if spec.recipe is not None else self.command
        return spec.model_copy(update={"launcher": self.launcher, "command": command})


def choose(spec: JobSpec, read: source.Read | None = None, *, has_torch: bool | None = None) -> LauncherChoice:
    """The launcher of a spec that says `auto`, and its own otherwise.

    `read` gives the files of the job's working folder, and `has_torch` says whether its Python has torch: None where
    nobody can tell.
    """
    if spec.recipe is not None or spec.command is None:
        return LauncherChoice(launcher=Launcher.TORCHRUN, command=())
    understood = launch_commands.understand(spec.command) if _decides(spec) else None
    if understood is not None:
        return LauncherChoice(
            launcher=understood.launcher,
            command=understood.command,
            reason=_left_out(understood),
            mismatch=_mismatch(spec, understood),
        )
    if spec.launcher is not Launcher.AUTO:
        return LauncherChoice(launcher=spec.launcher, command=spec.command)
    if not commands.is_python(spec.command):
        return LauncherChoice(launcher=Launcher.NONE, command=spec.command)
    launcher, reason = _of_python(spec, read_facts(spec, read), has_torch=has_torch)
    return LauncherChoice(launcher=launcher, command=spec.command, reason=reason)


def _decides(spec: JobSpec) -> bool:
    """Return whether a launcher that the command names is taken off: with an explicit `python` or `none` it stays."""
    return spec.launcher.ranked


def _left_out(understood: launch_commands.LaunchCommand) -> LauncherReason | None:
    if not understood.left_out:
        return None
    typed = " ".join(understood.left_out)
    return LauncherReason(
        LauncherReasonCode.LEFT_OUT,
        "the command asks for it (`{subject}` is left out: the queue starts one process per GPU itself)",
        subject=typed,
    )


def _mismatch(spec: JobSpec, understood: launch_commands.LaunchCommand) -> str:
    resources, asked = spec.resources, understood.processes
    if understood.nodes != resources.nodes and understood.nodes > 1:
        return TranslatableText(
            "command-nodes",
            "it asks for {nodes} nodes: say resources: {{nodes: {nodes}}} as well",
            nodes=understood.nodes,
        )
    if asked is not None and asked != max(1, resources.gpus):
        return TranslatableText(
            "command-processes",
            "it asks for {asked} processes on a node, and the queue starts one for each of the job's {gpus} GPUs: "
            "say --gpus {asked} (resources.gpus), or --launcher none to run it as it is",
            asked=asked,
            gpus=resources.gpus,
        )
    return ""


def _of_python(
    spec: JobSpec, found: ProgramFacts | None, *, has_torch: bool | None
) -> tuple[Launcher, LauncherReason | None]:
    if found is not None and found.starts is not None:
        return Launcher.PYTHON, LauncherReason(
            LauncherReasonCode.STARTS_ITSELF, "{subject} starts the processes itself", subject=found.starts
        )
    if found is not None and has_torch is False and not found.imports_torch:
        return Launcher.PYTHON, LauncherReason(
            LauncherReasonCode.NO_TORCH, "the job's Python has no torch, and its script imports none"
        )
    if found is not None and found.local_rank is not None:
        return Launcher.LAUNCH, LauncherReason(
            LauncherReasonCode.TAKES_RANK, "the script takes its rank as {subject}", subject=found.local_rank
        )
    if spec.resources.gpus == 0 and (found is None or not found.joins):
        return Launcher.PYTHON, None
    return Launcher.TORCHRUN, None


def read_facts(spec: JobSpec, read: source.Read | None) -> ProgramFacts | None:
    """Read the facts from the source of a Python command; None where it is not at hand or is no Python."""
    program = read_program(spec, read)
    return None if program is None else facts.of(program)


def read_program(spec: JobSpec, read: source.Read | None) -> source.ProgramSource | None:
    """The parsed source of a Python command."""
    if read is None or spec.command is None or not commands.is_python(spec.command):
        return None
    run = commands.program(spec.command)
    if run.script is not None and not _inside(run.script):
        return None
    return source.program(read, run.script, run.module)


def _inside(path: str) -> bool:
    return not path.startswith("/") and ".." not in PurePath(path).parts


def doubts(spec: JobSpec, found: ProgramFacts | None) -> list[str]:
    """Warnings about a ranked launcher, by the source of the script."""
    if found is None or spec.launcher not in {Launcher.TORCHRUN, Launcher.LAUNCH}:
        return []
    if found.starts is not None:
        return [f"{found.starts} starts the processes itself, which do not find each other under torchrun: say {_MEND}"]
    if found.may_start is not None:
        may = "may start processes itself, which do not find each other under torchrun"
        return [f"{found.may_start} {may}: then say {_MEND}"]
    if spec.world_size > 1 and not found.distributed:
        return [
            f"the script joins no process group, as far as its source shows: its {spec.world_size} processes would "
            f"each train a copy of their own. Join one (DistributedDataParallel), or say {_MEND}: "
            "one process with all GPUs"
        ]
    return []


_MEND = "launcher: python (yard run: --launcher python)"
