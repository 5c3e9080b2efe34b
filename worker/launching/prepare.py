"""Lays out what an attempt needs: its folders, its code, and the checkpoint it resumes from."""

import hashlib
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath

from torchyard.analysis.commands import python_program
from torchyard.injob import layout
from torchyard.spec import JobSpec, Launcher
from torchyard.wire import FileRef, Launch, Restore, Root
from worker.attempts import content, opening, ownership, tree
from worker.attempts.folder import AttemptFolder
from worker.exceptions import CodeError, MissingBlobError, RestoreError
from worker.launching import argv, carry
from worker.launching.identity import UnixUser

#: Brings the blob with a hash to a path; raises MissingBlobError when the store no longer has it.
Fetch = Callable[[str, Path], None]

_DOWNLOADS = 8
_JOB_FOLDERS = (layout.CODE, layout.METRICS, layout.MARKS, layout.CHECKPOINTS, layout.OUTPUT)


def lay_out(folder: AttemptFolder, launch: Launch, fetch: Fetch) -> Path:
    """Make the job's folders anew; return its working folder. Raises UnusableError."""
    folder.clear(layout.JOB, layout.RESTORE, layout.LOGS)
    folder.at(layout.LOGS).mkdir(mode=0o755)
    # Until `let_in` nobody else comes into these two: all that is laid out below them may be named by its path.
    folder.at(layout.JOB).mkdir(mode=0o700)
    for name in _JOB_FOLDERS:
        folder.at(name).mkdir()
    cwd = _code(folder, launch, fetch)
    if launch.restore is not None:
        _restore(folder, launch.restore, fetch)
    return cwd


def carry_over(folder: AttemptFolder, launch: Launch, fetch: Fetch, floor: int | None = None) -> tree.BaselineManifest:
    """Add the files that the attempt before has left; return what lies in the folder now. Raises CodeError."""
    snapshot = {(Root.CODE, ref.path): ref.sha256 for ref in launch.code or ()}
    manifest = tree.BaselineManifest(patterns=launch.spec.outputs, live=launch.spec.live is not None, snapshot=snapshot)
    if launch.carry is None:
        return manifest
    try:
        manifest.carried, notes = carry.lay_out(
            folder, launch.carry, lambda root, refs: _materialize(root, refs, fetch), floor
        )
    except (MissingBlobError, ValueError) as error:
        raise CodeError(
            f"the files of the attempt before cannot be laid out: {error}; rerun the job from start"
        ) from error
    with folder.at(layout.LOGS).joinpath(layout.LAUNCHER_LOG).open("a") as log:
        log.writelines(f"torchyard: {note}\n" for note in notes)
    return manifest


def _code(folder: AttemptFolder, launch: Launch, fetch: Fetch) -> Path:
    spec = launch.spec
    if spec.live is not None:
        return check_live(Path(spec.live), spec)
    code = folder.at(layout.CODE)
    try:
        _materialize(code, launch.code or (), fetch)
    except (MissingBlobError, ValueError) as error:
        raise CodeError(f"the code cannot be laid out: {error}") from error
    join_links(code, spec)
    check_program(code, spec)
    return code


def _restore(folder: AttemptFolder, restore: Restore, fetch: Fetch) -> None:
    target = folder.at(layout.RESTORE)
    target.mkdir(mode=0o700)
    try:
        _materialize(target, [ref for ref in restore.files if ref.sha256], fetch)
        for ref in restore.files:
            if not ref.sha256:
                _copy_local(AttemptFolder(folder.attempts, restore.attempt), restore.name, ref, target)
    except (MissingBlobError, ValueError) as error:
        raise RestoreError(
            f"the checkpoint to resume from cannot be read: {error}; rerun the job from another"
        ) from error


def _copy_local(earlier: AttemptFolder, name: str, ref: FileRef, target: Path) -> None:
    """Take a file of a checkpoint that is not in the store yet from the attempt that wrote it; raise ValueError.

    OSError while that is on its way: the next try finds the folder, or the store has the checkpoint.
    """
    place = safe_path(target, ref.path)
    place.parent.mkdir(parents=True, exist_ok=True)
    owner = earlier.at(layout.JOB).lstat().st_uid
    with opening.file_inside(earlier.path, f"{layout.CHECKPOINTS}/{name}/{ref.path}", owner) as descriptor:
        if os.fstat(descriptor).st_size != ref.size:
            raise ValueError(f"{ref.path} has not the size that its manifest says")
        content.copy(descriptor, place, ref.size)
    place.chmod(0o600)


def _materialize(root: Path, refs: Iterable[FileRef], fetch: Fetch) -> None:
    """Bring files to their places and check their hashes; raise ValueError for a bad path or a wrong hash."""
    targets = {safe_path(root, ref.path): ref for ref in refs}
    for parent in {target.parent for target in targets}:
        parent.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(_DOWNLOADS) as pool:
        for _ in pool.map(lambda item: _bring(item[0], item[1], fetch), targets.items()):
            pass


def _bring(target: Path, ref: FileRef, fetch: Fetch) -> None:
    fetch(ref.sha256, target)
    with target.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != ref.sha256:
        raise ValueError(f"{ref.path} does not match its SHA-256")
    target.chmod(0o600 | (ref.mode & 0o777))


def safe_path(root: Path, name: str) -> Path:
    """A path inside `root`; raises ValueError for one that would leave it."""
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts or "\0" in name:
        raise ValueError(f"{name!r} is no path inside the folder")
    return root.joinpath(*parts)


def join_links(code: Path, spec: JobSpec) -> None:
    """Join the folders and files of `link` into the snapshot; raise CodeError naming the one that cannot be."""
    if not spec.link:
        return
    if spec.link_root is None:
        raise CodeError("link needs link_root, the folder that the snapshot was taken from: `yard submit` fills it in")
    for name in spec.link:
        source, target = Path(spec.link_root) / name, safe_path(code, name)
        if not source.exists():
            raise CodeError(f"link: {source} does not exist on this node: mend the path, or put the data there")
        if os.path.lexists(target):
            raise CodeError(f"link: {name} is in the snapshot already: leave it out of link, or add it to .yardignore")
        if any(parent.is_symlink() for parent in target.parents if parent.is_relative_to(code)):
            raise CodeError(f"link: {name} lies in a folder that is linked itself: leave it out")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(source)


def check_live(live: Path, spec: JobSpec) -> Path:
    """The folder, if it is one that can be entered and holds the program; raises CodeError."""
    if not live.is_dir():
        raise CodeError(f"live: {live} is no folder on this node: mend the path, or let `code:` upload it")
    if not os.access(live, os.R_OK | os.X_OK):
        raise CodeError(f"live: {live} cannot be entered by the worker: mend its permissions")
    check_program(live, spec)
    return live


def check_program(cwd: Path, spec: JobSpec) -> None:
    """Raise CodeError with the advice when the command's own script or program is a relative path that is missing."""
    program = _relative_program(spec)
    if program is None or (cwd / program).exists():
        return
    if program == "torchrun":
        raise CodeError("command: the queue starts torchrun itself: leave out `torchrun` and its options")
    if spec.live is not None:
        raise CodeError(f"command: {program} does not exist in {cwd}")
    raise CodeError(
        f"command: {program} is not in the job's code: it may be missing, or left out by .gitignore or .yardignore; "
        "take it out of there, or join its folder back with `link:`"
    )


def _relative_program(spec: JobSpec) -> str | None:
    if spec.command is None:
        return None
    if spec.launcher is Launcher.NONE:
        word: str | None = spec.command[0] if "/" in spec.command[0] else None
    else:
        word = python_program(argv.python_arguments(spec.command)).script
    return None if word is None or word.startswith("/") else word


def ranks(launch: Launch) -> range:
    """The ranks that run on this node."""
    count = launch.spec.local_world_size
    return range(launch.node_rank * count, (launch.node_rank + 1) * count)


def hand_over(folder: AttemptFolder, launch: Launch, identity: UnixUser | None) -> None:
    """Make the logs, and give them and all in job and restore to the job's user, who can't come in before `let_in`."""
    logs = folder.at(layout.LOGS)
    for name in (layout.LAUNCHER_LOG, *map(layout.rank_log, ranks(launch))):
        (logs / name).touch(mode=0o600)
    if identity is not None:
        for path in (logs, *_private(folder)):
            ownership.give_contents(path, identity.uid, identity.gid)


def let_in(folder: AttemptFolder, identity: UnixUser | None) -> None:
    """Give job, restore and the temporary folder to the job's user: from here on none of it is named by its path."""
    if identity is not None:
        for path in (*_private(folder), folder.temporary):
            ownership.give_top(path, identity.uid, identity.gid)


def _private(folder: AttemptFolder) -> list[Path]:
    return [path for path in (folder.at(layout.JOB), folder.at(layout.RESTORE)) if path.exists()]
