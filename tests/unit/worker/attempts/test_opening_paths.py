"""What a job's user can write is named by descriptors: root would follow whatever link lies at a path by then."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

WORKER = Path(__file__).parents[4] / "worker"
#: Functions of `os` and `shutil`, and methods of paths, that change or open what lies at a path.
FUNCTIONS = {
    *("os.chmod", "os.chown", "os.link", "os.makedirs", "os.mkdir", "os.open", "os.remove", "os.rename", "os.replace"),
    *("os.rmdir", "os.scandir", "os.symlink", "os.truncate", "os.unlink", "os.utime", "os.walk", "open"),
    *("shutil.chown", "shutil.copy", "shutil.copyfile", "shutil.copytree", "shutil.move", "shutil.rmtree"),
}
METHODS = {
    *("chmod", "hardlink_to", "mkdir", "open", "read_bytes", "read_text", "rename", "rmdir", "symlink_to", "touch"),
    *("unlink", "write_bytes", "write_text"),
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
        *("__main__", "attempts/files", "control/registration", "devices/locks", "devices/topology", "forward/attempt"),
        *(
            "forkserver/title",
            "forward/blobs",
            "launching/environment",
            "launching/learnt",
            "launching/rendezvous",
            "launching/shims",
            "launching/warm",
            "runtime",
        ),
        *(
            "settings",
            "shim/fork",
            "shim/joining",
            "shim/supervise",
            "shim/table",
            "trackers/journal",
            "trackers/printed",
            "trackers/state",
        ),
    ],
    "moves and removes folders whose parent is the worker's own": [
        *("attempts/folder", "attempts/kept", "attempts/retained"),
    ],
    "lays out what nobody else may enter before `prepare.let_in`": [
        *("attempts/content", "attempts/retained", "control/client", "launching/carry", "launching/launcher"),
        *("launching/prepare", "launching/resuming", "trackers/store"),
    ],
    "reads a script, perhaps of a `live` folder, for the name of one option": ["launching/local_rank"],
    "files of the kernel's cgroups, where nobody else makes any": [
        "limits/device_filter",
        "limits/hierarchies",
        "limits/node",
        "shim/cgroups",
    ],
    "a descriptor, not a path": ["attempts/tree", "monitoring/disk", "shim/drop", "trackers/find"],
    "descriptors, and the kernel's folder of a process": ["shim/lent"],
    "a method of ours of the same name": ["forward/bringer", "forward/written"],
    "runs as the job's user": [
        *("forkserver/reaper", "forkserver/packages", "forkserver/program", "forkserver/ranks"),
        *("monitoring/installed", "shim/rank"),
    ],
}


def by_path(module: Path) -> Iterator[str]:
    """The calls in a module that name a file by its path, with their lines."""
    for node in ast.walk(ast.parse(module.read_text())):
        if not isinstance(node, ast.Call) or {"dir_fd", "src_dir_fd"} & {word.arg for word in node.keywords}:
            continue
        called = ast.unparse(node.func)
        if called in FUNCTIONS or (isinstance(node.func, ast.Attribute) and node.func.attr in METHODS):
            yield f"{module}:{node.lineno}: {called}"


def names() -> set[str]:
    return {name for listed in ALLOWED.values() for name in listed}


MODULES = sorted(path.relative_to(WORKER).with_suffix("").as_posix() for path in WORKER.rglob("*.py"))


@pytest.mark.parametrize("name", [name for name in MODULES if name not in names()])
def test_nothing_is_named_by_its_path(name: str) -> None:
    assert list(by_path(WORKER / f"{name}.py")) == []


@pytest.mark.parametrize("name", sorted(names()))
def test_no_module_is_allowed_what_it_does_not_do(name: str) -> None:
    assert list(by_path(WORKER / f"{name}.py"))
