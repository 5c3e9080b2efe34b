import json
from pathlib import Path

import pytest

from service.simulator.__main__ import main

ROWS = "submit_time,duration,num_gpus,user\n0,3600,2,ada\n100,120,1,bob\n100,7200,2,bob\n"


@pytest.fixture
def trace(tmp_path: Path) -> str:
    path = tmp_path / "trace.csv"
    path.write_text(ROWS)
    return str(path)


def test_the_figures_of_one_policy_as_json(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([trace, "--gpus", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["preemptions"] > 0
    assert found["gpu_seconds_lost"] > 0


def test_what_a_preemption_costs_can_be_chosen(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([trace, "--gpus", "2", "--json", "--preemption-cost", "0"]) == 0
    assert json.loads(capsys.readouterr().out)["gpu_seconds_lost"] == 0


def test_all_policies_side_by_side(trace: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([trace, "--gpus", "2", "--policy", "all", "--plot", str(tmp_path / "plot.svg")]) == 0
    out = capsys.readouterr().out
    assert out.startswith("3 jobs of 2 users in 1m 40s, 2 GPUs\n")
    assert [line.split("  ")[0] for line in out.splitlines()[3:9]] == [
        "fifo", "fifo-backfill", "sjf (oracle)", "srtf (oracle)", "las", "fair",
    ]  # fmt: skip
    assert (tmp_path / "plot.svg").exists()


def test_a_trace_without_users_is_of_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "plain.csv"
    path.write_text("submit_time,duration,num_gpus\n0,7200,1\n0,7200,1\n")
    assert main([str(path), "--gpus", "1"]) == 0
    head, _, *table = capsys.readouterr().out.splitlines()
    assert head == "2 jobs of one user in 0 s, 1 GPUs"
    assert [line.split()[0] for line in table] == ["policy", "fair"]


def test_a_mistake_is_one_line_with_the_mend(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([trace, "--gpus", "1"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("simulate: line 2, num_gpus: 2 GPUs are more than there are, 1 x 1")
    assert error.count("\n") == 1


@pytest.fixture
def quotas(tmp_path: Path) -> Path:
    return tmp_path / "quotas.yaml"


def test_quotas_change_the_figures_and_those_of_users_are_told(
    trace: str, quotas: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quotas.write_text("users: {bob: {max_gpus: 1}}")
    assert main([trace, "--gpus", "2", "--policy", "fifo", "--quotas", str(quotas), "--json"]) == 0
    told = capsys.readouterr()
    found = json.loads(told.out)
    assert found["makespan"] == 3720
    assert found["users"]["bob"] == {"gpu_seconds": 120, "entitled": 3620, "mean_wait": 3500}
    assert told.err == (
        "simulate: warning: 1 job that could never start is left out of the simulation; line 4, num_gpus: 2 GPUs are "
        "more than max_gpus of user bob, 1\n"
    )


def test_users_with_quotas_are_in_a_table(trace: str, quotas: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quotas.write_text("users: {bob: {weight: 2}, bop: {weight: 3}}")
    assert main([trace, "--gpus", "2", "--policy", "fifo", "--policy", "fair", "--quotas", str(quotas)]) == 0
    told = capsys.readouterr()
    lines = [line.split()[:4] for line in told.out.splitlines() if " bob " in line and "GPU-h" in line]
    assert lines[:2] == [["fifo", "bob", "4.0", "GPU-h"], ["fair", "bob", "4.1", "GPU-h"]]
    assert told.err == "simulate: warning: users.bop: the trace has no jobs of this user; did you mean bob?\n"


def test_quotas_that_are_wrong_name_the_field(trace: str, quotas: Path, capsys: pytest.CaptureFixture[str]) -> None:
    quotas.write_text("users: {bob: {max_gpu: 1}}")
    assert main([trace, "--gpus", "2", "--quotas", str(quotas)]) == 1
    assert capsys.readouterr().err == (
        f"simulate: {quotas}: users.bob.max_gpu: unknown field; did you mean max_gpus?\n"
    )


def test_reservations_and_shares_change_the_figures(
    trace: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """bob's two hours would be over at 10,920; the GPUs are kept for eve from 9,000 on: he is stopped for her."""
    path = tmp_path / "reserved.csv"
    path.write_text("start_time,end_time,gpus,users\n9000,12600,2,eve\n")
    words = [trace, "--gpus", "2", "--json"]
    assert main([*words, "--reservations", str(path)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["makespan"] > 12_600
    assert found["reserved_idle"] > 0
    path.write_text("start_time,end_time,gpus,users\n9000,12600,3,eve\n")
    assert main([*words, "--reservations", str(path)]) == 1
    assert capsys.readouterr().err == (f"simulate: {path}: line 2, gpus: '3' is not a number of GPUs from 1 to 2\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--gpus", "none"], "'none' is not a whole number from 1"),
        (["--gpus", "2", "--plot", "plot.gif"], r"is no picture: end it with .png or .svg"),
        (["--gpus", "2", "--plot", "/nowhere/at-all/plot.png"], "there is no folder /nowhere/at-all"),
        (["--gpus", "2", "--gpu-memory", "big"], "'big' is not a size: write bytes, or 512MiB"),
        (["--gpus", "2", "--preemption-cost", "x"], "'x' is not a whole number of seconds"),
    ],
)
def test_wrong_usage(trace: str, words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([trace, *words])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
