import subprocess
from pathlib import Path

from tests.support.wait import until
from worker.shim import cgroups


def test_a_process_enters_each_group(tmp_path: Path) -> None:
    groups = [tmp_path / "memory", tmp_path / "pids"]
    for group in groups:
        group.mkdir()
    cgroups.enter(map(str, groups))
    assert [(group / "cgroup.procs").read_text() for group in groups] == ["0", "0"]


def test_counters(tmp_path: Path) -> None:
    file = tmp_path / "memory.stat"
    file.write_text("cache 1\ntotal_rss 20\ntotal_shmem 3\nPss_Anon:      4 kB\n\n")
    assert cgroups.counter(str(file), ["total_rss", "total_shmem"]) == 23
    assert cgroups.counter(str(file), ["Pss_Anon:"]) == 4
    assert cgroups.counter(str(file), ["another"]) is None
    (tmp_path / "memory.max_usage_in_bytes").write_text("104857600\n")
    assert cgroups.counter(str(tmp_path / "memory.max_usage_in_bytes"), []) == 104857600
    assert cgroups.counter(str(tmp_path / "gone"), ["cache"]) is None


def test_groups_that_the_job_has_made_go_too(tmp_path: Path) -> None:
    (tmp_path / "group" / "inner" / "innermost").mkdir(parents=True)
    assert cgroups.remove([str(tmp_path / "group"), str(tmp_path / "gone")]) == []
    assert list(tmp_path.iterdir()) == []


def test_a_group_that_is_not_empty_stays(tmp_path: Path) -> None:
    (tmp_path / "cgroup.procs").touch()
    assert cgroups.remove([str(tmp_path)], 0.0) == [str(tmp_path)]


def test_what_is_left_in_a_group_is_killed(tmp_path: Path) -> None:
    assert not cgroups.kill([str(tmp_path)])
    (tmp_path / "inner").mkdir()
    with subprocess.Popen(["sleep", "600"]) as process:
        (tmp_path / "inner" / "cgroup.procs").write_text(f"{process.pid}\n")
        assert cgroups.kill([str(tmp_path)])
        until(lambda: process.poll() is not None, what="its end")
    assert process.returncode == -9
    assert [path.name for path in tmp_path.iterdir()] == ["inner"]
