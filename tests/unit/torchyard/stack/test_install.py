"""An installation into a folder that stands for the machine; then one thing after another is broken."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support import accounts
from torchyard.stack import install
from torchyard.stack.install import Plan
from worker.limits.hierarchies import SUBGROUP

PYTHON = Path(sys.executable)


@pytest.fixture
def plan(open_tmp: Path) -> Iterator[Plan]:
    """A machine as `yard install` makes it."""
    with accounts.account() as made:
        accounts.change("usermod", "--shell", install.NOLOGIN, made.pw_name)
        plan = install.machine(PYTHON, "/bin/true", account=made.pw_name, prefix=open_tmp)
        install.apply(plan)
        yield plan


def path(plan: Plan, end: str) -> Path:
    """The one path of the plan with this end."""
    (found,) = (each.path for each in (*plan.folders, *plan.files) if str(each.path).endswith(end))
    return found


def chmod(end: str, mode: int) -> Callable[[Plan], object]:
    return lambda plan: path(plan, end).chmod(mode)


def chown(end: str) -> Callable[[Plan], object]:
    return lambda plan: os.chown(path(plan, end), 4001, -1)


def gone(end: str) -> Callable[[Plan], object]:
    return lambda plan: path(plan, end).unlink()


def edited(unit: str, pattern: str, text: str) -> Callable[[Plan], object]:
    def edit(plan: Plan) -> None:
        file = path(plan, unit)
        changed = re.sub(pattern, text, file.read_text(), flags=re.MULTILINE)
        assert changed != file.read_text()
        file.write_text(changed)

    return edit


SETTINGS = "lib/torchyard/settings.yaml"
SERVICE, WORKER, REDIS = "torchyard.service", "torchyard-worker.service", "torchyard-redis.service"
BROKEN: dict[str, tuple[Callable[[Plan], object], str]] = {
    "home that others enter": (chmod("lib/torchyard", 0o755), "has mode 0755 instead of 0700"),
    "home of another": (chown("lib/torchyard"), "belongs to 4001 instead of"),
    "closed worker folder": (chmod("torchyard-worker", 0o700), "has mode 0700 instead of 0711"),
    "worker folder of another": (chown("torchyard-worker"), "belongs to 4001 instead of root"),
    "open attempts": (chmod("attempts", 0o777), "has mode 0777 instead of 0711"),
    "no attempts": (lambda plan: path(plan, "attempts").rmdir(), "there is no folder"),
    "open settings folder": (chmod("etc/torchyard", 0o755), "has mode 0755 instead of 0700"),
    "settings folder of another": (chown("etc/torchyard"), "belongs to 4001 instead of root"),
    "open settings": (chmod(SETTINGS, 0o644), "has mode 0644 instead of 0600"),
    "settings of another": (chown(SETTINGS), "belongs to 4001 instead of"),
    "no settings": (gone(SETTINGS), "there is no file"),
    "worker's settings of another": (chown("etc/torchyard/settings.yaml"), "belongs to 4001 instead of root"),
    "worker's settings anywhere": (
        edited(WORKER, "^Environment=.*\n", ""),
        "Environment is missing instead of TORCHYARD_SETTINGS=/etc/torchyard/settings.yaml",
    ),
    "open password of Redis": (chmod("redis.conf", 0o640), "has mode 0640 instead of 0600"),
    "no configuration of Redis": (gone("redis.conf"), "there is no file"),
    "open worker.env": (chmod("worker.env", 0o604), "has mode 0604 instead of 0600"),
    "no worker.env": (gone("worker.env"), "there is no file"),
    "no unit of the service": (gone(SERVICE), "there is no file"),
    "no unit of the worker": (gone(WORKER), "there is no file"),
    "no unit of Redis": (gone(REDIS), "there is no file"),
    "unit that others change": (chmod(SERVICE, 0o666), "has mode 0666 instead of 0644"),
    "unit of another": (chown(WORKER), "belongs to 4001 instead of root"),
    "service as root": (edited(SERVICE, "^User=.*", "User=root"), "User is root instead of"),
    "Redis as root": (edited(REDIS, "^User=.*\n", ""), "User is missing instead of"),
    "jobs end with the worker": (edited(WORKER, "^KillMode=.*\n", ""), "KillMode is missing instead of process"),
    "a job's memory ends the worker": (edited(WORKER, "=continue", "=stop"), "OOMPolicy is stop instead of continue"),
    "no groups": (edited(WORKER, "^Delegate=yes", "Delegate=no"), "Delegate is no instead of yes"),
    "few files": (edited(SERVICE, "65536", "1024"), "LimitNOFILE is 1024 instead of 65536"),
    "no folder of the sign-in socket": (
        edited(SERVICE, "^RuntimeDirectory=.*\n", ""),
        "RuntimeDirectory is missing instead of torchyard",
    ),
    "few tasks": (edited(WORKER, "TasksMax=infinity", "TasksMax=100"), "TasksMax is 100 instead of infinity"),
    "no such program": (edited(SERVICE, "^ExecStart=\\S+", "ExecStart=/no/python"), "names /no/python, which is no"),
    "other arguments": (edited(WORKER, "--home \\S+", "--home /tmp"), "ExecStart has other arguments than"),
    "another home": (edited(SERVICE, "HOME=.*", "HOME=/tmp"), "Environment is TORCHYARD_HOME=/tmp instead of"),
    "no unit at all": (lambda plan: path(plan, WORKER).write_text("ExecStart=x"), "is no unit that can be read"),
}


@accounts.needs_root
def test_an_installation_is_as_it_should_be_and_systemd_reads_it(plan: Plan) -> None:
    assert list(install.findings(plan)) == []
    home = path(plan, "lib/torchyard")
    assert (install.owner_of(plan, home), install.owner_of(plan, home.parent)) == (home.stat().st_uid, None)
    assert install.is_installed(plan)
    assert install.verified(plan.units) == ""


@accounts.needs_root
@pytest.mark.parametrize(("breaks", "words"), BROKEN.values(), ids=BROKEN)
def test_what_is_broken_is_named_and_mended(plan: Plan, breaks: Callable[[Plan], object], words: str) -> None:
    breaks(plan)
    (finding,) = install.findings(plan)
    assert words in finding
    for command in re.findall(r"`(ch(?:mod|own) [^`]*)`", finding):
        subprocess.run(command.split(), check=True)
    install.apply(plan)
    assert list(install.findings(plan)) == []


@pytest.fixture
def node(open_tmp: Path) -> Plan:
    """A machine with the worker of a node alone."""
    plan = install.node(PYTHON, "https://yard.example", name="box2", prefix=open_tmp)
    install.apply(plan)
    return plan


@accounts.needs_root
def test_a_node_is_known_again_by_what_is_installed(node: Plan, open_tmp: Path) -> None:
    assert path(node, "worker.env").read_text() == "TORCHYARD_URL=https://yard.example\nTORCHYARD_NODE=box2\n"
    found = install.of_machine(PYTHON, "/bin/true", prefix=open_tmp)
    assert install.is_installed(found)
    assert list(install.findings(found)) == []
    path(node, "attempts").chmod(0o700)
    assert "has mode 0700 instead of 0711" in next(install.findings(found))
    assert install.verified(node.units) == ""


def test_redis_takes_no_port_where_the_one_of_a_distribution_listens(tmp_path: Path) -> None:
    texts = {file.path.name: file.text for file in install.machine(PYTHON, "/bin/true", prefix=tmp_path).files[:2]}
    assert f"\nport {install.REDIS_PORT}\n" in texts["redis.conf"]
    assert f"@127.0.0.1:{install.REDIS_PORT}/0\n" in texts["settings.yaml"]
    assert install.REDIS_PORT != 6379


@pytest.fixture
def plans(tmp_path: Path) -> dict[str, Plan]:
    """One of each kind."""
    return {
        "machine": install.machine(PYTHON, "/bin/true", prefix=tmp_path),
        "node": install.node(PYTHON, "https://yard.example", prefix=tmp_path),
        "person": install.person(PYTHON, tmp_path, tmp_path),
    }


@pytest.mark.parametrize("which", ["machine", "node", "person"])
def test_no_unit_starts_so_often_that_systemd_gives_it_up(which: str, plans: dict[str, Plan]) -> None:
    """It does after five starts in ten seconds."""
    assert all("\nRestartSec=2\n" in unit.text for unit in plans[which].units)


@pytest.mark.parametrize("which", ["machine", "node", "person"])
def test_a_restart_ends_no_training_and_jobs_have_groups_beside_the_workers(which: str, plans: dict[str, Plan]) -> None:
    text = plans[which].units[-1].text
    for line in ("KillMode=process", "OOMPolicy=continue", "Delegate=yes", f"DelegateSubgroup={SUBGROUP}"):
        assert f"\n{line}\n" in text


@accounts.needs_root
def test_accounts_that_are_missing_or_that_people_log_in_to(plan: Plan, open_tmp: Path) -> None:
    (account,) = plan.accounts
    accounts.change("usermod", "--shell", "/bin/sh", account.name)
    assert f"`usermod -s {install.NOLOGIN} {account.name}`" in next(install.findings(plan))
    other = install.machine(PYTHON, "/bin/true", account="nobody-has-this", prefix=open_tmp)
    assert "there is no account nobody-has-this" in next(install.findings(other))


@accounts.needs_root
def test_settings_stay_and_secrets_are_not_made_anew(plan: Plan) -> None:
    settings = path(plan, SETTINGS)
    settings.write_text("service: {visibility: private}\n")
    password = path(plan, "redis.conf").read_text()
    (account,) = plan.accounts
    again = install.machine(PYTHON, "/bin/true", account=account.name, prefix=plan.folders[0].path.parents[2])
    assert any(step.endswith("left as it is") for step in install.steps(again))
    install.apply(again)
    assert settings.read_text() == "service: {visibility: private}\n"
    assert path(plan, "redis.conf").read_text() == password


def test_a_person_installs_a_stack_of_their_own(tmp_path: Path) -> None:
    plan = install.person(PYTHON, tmp_path / "home", tmp_path / "units")
    assert not install.is_installed(plan)
    install.apply(plan)
    assert list(install.findings(plan)) == []
    assert not plan.accounts
    assert "User=" not in plan.units[0].text


def test_a_dry_run_changes_nothing(tmp_path: Path) -> None:
    environment = {**os.environ, "TORCHYARD_HOME": str(tmp_path / "home"), "XDG_CONFIG_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "torchyard.cli.main", "install", "--dry-run"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "torchyard.service (mode 0644" in done.stdout
    assert "KillMode=process" in done.stdout
    assert list(tmp_path.iterdir()) == []
