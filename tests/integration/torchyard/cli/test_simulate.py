import json
import subprocess
import sys
from pathlib import Path

import pytest

ROWS = "submit_time,duration,num_gpus\n0,60,1\n10,60,2\n"


def yard(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "torchyard.cli.main", "simulate", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "trace.csv"
    path.write_text(ROWS)
    return path


def test_a_trace_is_simulated_wherever_one_is(trace: Path, tmp_path: Path) -> None:
    (tmp_path / "service").mkdir()
    done = yard("trace.csv", "--gpus", "2", "--policy", "fifo", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["mean_jct"], found["makespan"]) == (pytest.approx(85), pytest.approx(120))


def test_nodes_policies_cost_and_plot_are_passed_on(trace: Path, tmp_path: Path) -> None:
    words = ("--nodes", "2", "--policy", "las", "--policy", "srtf", "--preemption-cost", "7", "--plot", "plot.png")
    done = yard(str(trace), "--gpus", "1", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "2 x 1 GPUs" in done.stdout
    assert "srtf (oracle)" in done.stdout
    assert (tmp_path / "plot.png").exists()


def test_quotas_are_passed_on(trace: Path, tmp_path: Path) -> None:
    (tmp_path / "quotas.yaml").write_text("users: {unnamed: {max_gpus: 1}}")
    done = yard(str(trace), "--gpus", "2", "--quotas", "quotas.yaml", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1 job that could never start is left out" in done.stderr
    assert json.loads(done.stdout)["makespan"] == pytest.approx(60)


def test_shares_and_reservations_are_passed_on(tmp_path: Path) -> None:
    (tmp_path / "trace.csv").write_text("submit_time,duration,num_gpus,gpu_share\n0,60,1,20GiB\n0,60,1,20GiB\n")
    (tmp_path / "reserved.csv").write_text("start_time,end_time,nodes,maintenance\n0,30,0,1\n")
    words = ("--gpus", "1", "--gpu-memory", "40GiB", "--reservations", "reserved.csv", "--json")
    done = yard("trace.csv", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["makespan"] == pytest.approx(90)


def test_a_mistake_in_the_trace_is_told_once(trace: Path, tmp_path: Path) -> None:
    done = yard(str(trace), "--gpus", "1", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "line 3, num_gpus" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--gpus", "8"], "give a trace, or --from-history"),
        (["trace.csv", "--gpus", "8", "--from-history"], "give a trace, or --from-history"),
        (["trace.csv", "--gpus", "8", "--save-trace", "x.csv"], "without --from-history"),
    ],
)
def test_a_trace_or_the_history_is_needed(words: list[str], message: str, trace: Path, tmp_path: Path) -> None:
    done = yard(*words, cwd=trace.parent)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.replace("│", " ").split())
