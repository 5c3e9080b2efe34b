"""What a job's user can write is named by descriptors: root would follow whatever link lies at a path by then."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

WORKER = Path(__file__).parents[4] / "worker"
#: Functions of `os` and `shutil`, and methods of paths, that change, open or list what lies at a path.
FUNCTIONS = {
    *("os.chdir", "os.chmod", "os.chown", "os.chroot", "os.fwalk", "os.lchmod", "os.lchown", "os.link", "os.listdir"),
    *("os.makedirs", "os.mkdir", "os.mkfifo", "os.mknod", "os.open", "os.readlink", "os.remove", "os.removedirs"),
    *("os.removexattr", "os.rename", "os.renames", "os.replace", "os.rmdir", "os.scandir", "os.setxattr", "os.symlink"),
    *("os.truncate", "os.unlink", "os.utime", "os.walk", "io.open", "open", "shutil.chown", "shutil.copy"),
    *("shutil.copy2", "shutil.copyfile", "shutil.copymode", "shutil.copystat", "shutil.copytree", "shutil.move"),
    *("shutil.make_archive", "shutil.rmtree", "shutil.unpack_archive"),
}
METHODS = {
    *("chmod", "glob", "hardlink_to", "iterdir", "lchmod", "mkdir", "open", "read_bytes", "read_text", "rename"),
    *("rglob", "rmdir", "symlink_to", "touch", "unlink", "walk", "write_bytes", "write_text"),
}
#: Those that tell what lies at a path.
LOOKING_FUNCTIONS = {
    *("os.access", "os.getxattr", "os.listxattr", "os.lstat", "os.stat", "os.statvfs", "shutil.disk_usage"),
    *(f"os.path.{name}" for name in ("exists", "isdir", "isfile", "islink", "ismount", "lexists", "realpath")),
    *(f"os.path.{name}" for name in ("getatime", "getctime", "getmtime", "getsize", "samefile")),
}
LOOKING_METHODS = {
    *("exists", "is_block_device", "is_char_device", "is_dir", "is_fifo", "is_file", "is_mount", "is_socket"),
    *("is_symlink", "lstat", "readlink", "resolve", "samefile", "stat"),
}
#: Modules that use paths all the same, by what makes that safe.
ALLOWED = {
    "opens from a folder of the worker's own downwards": [
        "attempts/opening",
        "attempts/ownership",
        "attempts/removal",
        "shim/files",
    ],
    "the worker's own files": [
        *("__main__", "attempts/files", "control/registration", "devices/locks", "devices/topology", "forward/streams"),
        *(
            "forkserver/title",
            "forward/blobs",
            "launching/environment",
            "launching/learnt",
            "launching/rendezvous",
            "launching/shims",
            "launching/spawn",
            "launching/warm",
            "runtime",
        ),
        *(
            "settings",
            "shim/fork",
            "monitoring/inventory",
            "monitoring/watch",
            "shim/supervise",
            "trackers/journal",
            "trackers/printed",
            "trackers/state",
        ),
    ],
    "moves and removes folders whose parent is the worker's own": [
        *("attempts/folder", "attempts/kept", "attempts/retained", "attempts/unsent"),
    ],
    "lays out what nobody else may enter before `prepare.let_in`": [
        *("attempts/content", "attempts/retained", "control/client", "launching/carry", "launching/launcher"),
        *("launching/prepare", "launching/resuming", "trackers/settings", "trackers/store"),
    ],
    "reads a script, perhaps of a `live` folder, for the name of one option": ["launching/local_rank"],
    "files of the kernel's cgroups, where nobody else makes any": [
        "limits/device_filter",
        "limits/hierarchies",
        "limits/node",
        "shim/cgroups",
    ],
    "a descriptor, not a path": ["attempts/tree", "monitoring/disk", "shim/drop", "trackers/find"],
    "descriptors, and the kernel's folder of a process": [
        "forkserver/preload",
        "shim/joining",
        "shim/reaper_child",
        "shim/table",
    ],
    "a method of ours of the same name": ["forward/bringer", "forward/written"],
    "runs as the job's user": [
        *("forkserver/reaper", "forkserver/packages", "forkserver/program", "forkserver/ranks"),
        *("monitoring/installed", "shim/rank"),
    ],
}


#: Modules that look at what lies at paths, by what makes that tell a job's user nothing that is not theirs.
LOOKING = {
    "the worker's own files and folders, and what lies in these": [
        *("agent", "attempts/files", "attempts/folder", "attempts/kept", "attempts/retained", "attempts/unsent"),
        "control/registration",
        *("devices/locks", "forward/attempt", "forward/blobs", "forward/outputs", "launching/environment"),
        *(
            "launching/identity",
            "monitoring/inventory",
            "monitoring/user_disk",
            "settings",
            "shim/files",
            "trackers/printed",
        ),
    ],
    "what nobody else may enter before `prepare.let_in`": [
        *("attempts/tree", "launching/carry", "launching/prepare", "launching/resuming", "trackers/store"),
    ],
    "entries of an open folder": ["attempts/ownership", "monitoring/disk", "trackers/find"],
    "what a spec names: whoever submits is told that it is missing (SECURITY.md)": ["launching/interpreter"],
    "whether something has changed, which is told to nobody": ["forward/environments", "trackers/database"],
    "where a path leads, to be opened like any other": ["trackers/shared", "trackers/translate"],
    "the kernel's files": ["limits/hierarchies", "monitoring/processes"],
    "a function of ours of the same name": ["launching/launcher"],
    "runs as the job's user": [
        *("forkserver/packages", "forkserver/program", "forkserver/server", "monitoring/installed"),
    ],
}


def by_path(module: Path, functions: set[str] = FUNCTIONS, methods: set[str] = METHODS) -> Iterator[str]:
    """The calls in a module that name a file by its path, with their lines."""
    for node in ast.walk(ast.parse(module.read_text())):
        if not isinstance(node, ast.Call) or {"dir_fd", "src_dir_fd"} & {word.arg for word in node.keywords}:
            continue
        called = ast.unparse(node.func)
        if called in functions or is_method(node, called, methods):
            yield f"{module}:{node.lineno}: {called}"


def is_method(call: ast.Call, called: str, methods: set[str]) -> bool:
    if not isinstance(call.func, ast.Attribute) or called.startswith(("os.", "shutil.")):
        return False
    renames = call.func.attr == "replace" and len(call.args) == 1 and methods is METHODS  # that of a text takes two
    return renames or call.func.attr in methods


def looks(module: Path) -> list[str]:
    return list(by_path(module, LOOKING_FUNCTIONS, LOOKING_METHODS))


def names(reasons: dict[str, list[str]]) -> set[str]:
    return {name for listed in reasons.values() for name in listed}


MODULES = sorted(path.relative_to(WORKER).with_suffix("").as_posix() for path in WORKER.rglob("*.py"))


@pytest.mark.parametrize("name", [name for name in MODULES if name not in names(ALLOWED)])
def test_nothing_is_named_by_its_path(name: str) -> None:
    assert list(by_path(WORKER / f"{name}.py")) == []


@pytest.mark.parametrize("name", [name for name in MODULES if name not in names(LOOKING)])
def test_nothing_is_looked_at_by_its_path(name: str) -> None:
    assert looks(WORKER / f"{name}.py") == []


@pytest.mark.parametrize("name", sorted(names(ALLOWED)))
def test_no_module_is_allowed_what_it_does_not_do(name: str) -> None:
    assert list(by_path(WORKER / f"{name}.py"))


@pytest.mark.parametrize("name", sorted(names(LOOKING)))
def test_no_module_is_allowed_looks_that_it_does_not_take(name: str) -> None:
    assert looks(WORKER / f"{name}.py")
