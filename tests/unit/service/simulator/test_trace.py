import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.simulator.exceptions import TraceError
from service.simulator.trace import SECOND, Cluster, TraceJob, parse, read, write
from torchyard.spec import PRIORITY_RANK, Priority
from torchyard.spec.restarts import RestartPermission

HEAD = "submit_time,duration,num_gpus"


def lines(*rows: str, head: str = HEAD) -> list[str]:
    return [f"{head}\n", *(f"{row}\n" for row in rows)]


def test_three_columns_are_enough() -> None:
    (found,) = parse(lines("1.5,60,2"))
    assert found == TraceJob(line=2, submit_us=1_500_000, duration_us=60 * SECOND, gpus=2)


def test_all_columns_in_any_order_beside_others() -> None:
    head = "user, project,note,priority,num_gpus,estimate,duration,submit_time"
    (found,) = parse(lines("ada,vision,x,high,1,90,60,0", head=head))
    assert (found.user, found.project, found.estimate_us) == ("ada", "vision", 90 * SECOND)
    assert found.priority == PRIORITY_RANK[Priority.HIGH]


def test_what_is_left_empty_has_its_default() -> None:
    (found,) = parse(lines("0,60,1,,,,", head=f"{HEAD},user,project,priority,estimate"))
    assert found == TraceJob(line=2, submit_us=0, duration_us=60 * SECOND, gpus=1)


def test_a_priority_may_be_its_rank() -> None:
    found = parse(lines("0,60,1,0", "0,60,1,3", head=f"{HEAD},priority"))
    assert [job.priority for job in found] == [0, 3]


def test_jobs_are_in_the_order_in_which_they_came() -> None:
    assert [job.submit_us for job in parse(lines("7,1,1", "-3,1,1", "5,1,1"))] == [-3 * SECOND, 5 * SECOND, 7 * SECOND]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["0,60"], r"line 2, num_gpus: nothing is not a number of GPUs: write a whole number from 1"),
        (["0,60,1", "soon,60,1"], r"line 3, submit_time: 'soon' is not a number of seconds"),
        (["0,-1,1"], r"line 2, duration: '-1' is not a number of seconds, 0 or more"),
        (["0,nan,1"], r"line 2, duration: 'nan'"),
        (["0,inf,1"], r"line 2, duration: 'inf'"),
        (["0,60,0"], r"line 2, num_gpus: '0' .*jobs without GPUs wait for none and are left out"),
        (["0,60,1.5"], r"line 2, num_gpus: '1.5'"),
        ([], r"no jobs in the trace"),
    ],
)
def test_errors_name_line_column_and_mend(rows: list[str], message: str) -> None:
    with pytest.raises(TraceError, match=message):
        parse(lines(*rows))


def test_an_unknown_class_is_told_the_classes() -> None:
    with pytest.raises(TraceError, match=r"line 2, priority: 'huge' is no class: write low, normal, high, urgent"):
        parse(lines("0,60,1,huge", head=f"{HEAD},priority"))


def test_flags_are_0_or_1_and_1_where_nothing_is_said() -> None:
    found = parse(lines("0,60,1,0,0,0,0", "0,60,1,1,,0,", head=f"{HEAD},stoppable,restartable,reports,resumes"))
    assert [(job.stoppable, job.restartable, job.reports, job.resumes) for job in found] == [
        (False, RestartPermission.NEVER, False, False),
        (True, RestartPermission.AUTO, False, True),
    ]
    with pytest.raises(TraceError, match=r"line 2, reports: 'yes' is neither 0 nor 1"):
        parse(lines("0,60,1,yes", head=f"{HEAD},reports"))


def test_who_may_start_over_is_told_from_who_asks_for_it() -> None:
    found = parse(lines("0,60,1,0", "0,60,1,1", "0,60,1,2", head=f"{HEAD},restartable"))
    assert [job.restartable for job in found] == [
        RestartPermission.NEVER,
        RestartPermission.AUTO,
        RestartPermission.ASKED,
    ]
    with pytest.raises(TraceError, match=r"line 2, restartable: '3' is none of 0, 1 and 2: write 0 for never, 1 for"):
        parse(lines("0,60,1,3", head=f"{HEAD},restartable"))


def test_a_share_is_a_size() -> None:
    found = parse(lines("0,60,1,10GiB", "0,60,1,0", "0,60,1,", head=f"{HEAD},gpu_share"))
    assert [job.gpu_share for job in found] == [10 * 2**30, 0, 0]
    with pytest.raises(TraceError, match=r"line 2, gpu_share: 'half' is not a size: write bytes, or 512MiB"):
        parse(lines("0,60,1,half", head=f"{HEAD},gpu_share"))


def test_missing_columns_are_named() -> None:
    with pytest.raises(TraceError, match=r"line 1: no column duration, num_gpus"):
        parse(["submit_time\n", "0\n"])


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"nowhere\.csv: cannot be read"):
        read(tmp_path / "nowhere.csv")
    (tmp_path / "picture.csv").write_bytes(b"\x89PNG\r\n\xff\xfe")
    with pytest.raises(TraceError, match=r"picture\.csv: cannot be read"):
        read(tmp_path / "picture.csv")


def test_a_spreadsheets_mark_at_the_beginning_is_no_part_of_a_name(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("\ufeff" + "".join(lines("0,60,1")))
    assert len(read(path)) == 1


@given(
    st.builds(
        TraceJob,
        line=st.just(2),
        submit_us=st.integers(0, 10**14),
        duration_us=st.integers(0, 10**13),
        gpus=st.integers(1, 64),
        gpu_share=st.integers(0, 10**12),
        user=st.sampled_from(["ada", "bob, jr.", 'the "one"']),
        project=st.just("vision"),
        priority=st.integers(0, 3),
        estimate_us=st.none() | st.integers(0, 10**13),
        stoppable=st.booleans(),
        restartable=st.sampled_from(RestartPermission),
        reports=st.booleans(),
        resumes=st.booleans(),
    )
)
def test_what_is_written_is_read_again(one: TraceJob) -> None:
    file = io.StringIO(newline="")
    write([one], file)
    assert parse(io.StringIO(file.getvalue())) == [one]


@pytest.mark.parametrize(("gpus", "nodes", "each"), [(1, 1, 1), (8, 1, 8), (9, 2, 5), (16, 2, 8), (20, 3, 7)])
def test_spread_over_the_fewest_nodes_evenly(gpus: int, nodes: int, each: int) -> None:
    found, resources = Cluster(nodes=4, gpus=8).spread(gpus)
    assert (found, resources.gpus) == (nodes, each)
