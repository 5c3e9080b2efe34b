"""Stages of a start from the moments of service and node."""

from dataclasses import replace

from service.attempts import starts
from service.attempts.starts import AttemptMoments
from service.db.records.attempts import StoredStart
from service.db.records.spec import StoredSpec
from torchyard.spec import JobSpec
from torchyard.wire import NodeStart, PreloadedModules, StartMark

T = 1_700_000_000_000_000
NODE = NodeStart(
    heard_us=T + 20_000,
    published_us=T + 18_000,
    marks={StartMark.CLAIMING: 4_000, StartMark.CLAIMED: 10_000, StartMark.PREPARED: 13_000, StartMark.STARTED: 50_000},
    warm=False,
    cold_reason="no server yet",
    cold_code="unfit",
    cold_said="a file",
    preloaded=PreloadedModules(packages=["tidy"], modules=2, seconds=0.5),
)
MOMENTS = AttemptMoments(
    id="att-1",
    number=1,
    received_us=T,
    submitted_us=T + 5_000,
    created_us=T + 15_000,
    claimed_us=T + 27_000,
    start=StoredStart(looked_us=T + 12_000, node=NODE),
    spec=StoredSpec(JobSpec(command=("true",)).model_dump(mode="json")),
)


def shown(moments: AttemptMoments, reported_us: int | None = None) -> dict[str, float]:
    return {stage.name.value: stage.ms for stage in starts.timing(moments, reported_us).stages}


def test_each_stage_ends_where_the_next_begins() -> None:
    assert shown(MOMENTS, T + 90_000) == {
        "request": 5,
        "queue": 7,
        "scheduling": 3,
        "publishing": 3,
        "delivery": 2,
        "launch": 4,
        "claim": 6,
        "preparation": 3,
        "fork": 37,
        "first report": 20,
    }
    told = starts.timing(MOMENTS, None)
    assert (told.warm, told.cold_reason, told.clock_skew_ms, told.clock_skew_error_ms) == (False, "no server yet", 0, 3)
    assert (told.cold_code, told.cold_params) == ("unfit", {"said": "a file"})
    assert told.preloaded == NODE.preloaded
    assert [stage.at_ms for stage in told.stages][:3] == [0, 5, 12]


def test_a_nodes_clock_is_set_right_by_its_claim() -> None:
    ahead = NODE.model_copy(update={"heard_us": NODE.heard_us + 5_000_000})
    moved = replace(MOMENTS, start=StoredStart(looked_us=T + 12_000, node=ahead))
    assert shown(moved, T + 5_090_000) == shown(MOMENTS, T + 90_000)
    told = starts.timing(moved, None)
    assert (told.clock_skew_ms, told.clock_skew_error_ms) == (5_000, 3)


def test_the_claim_of_several_nodes_tells_nothing_of_a_clock() -> None:
    spec = JobSpec.model_validate({"command": ["true"], "resources": {"nodes": 2}})
    wide = replace(MOMENTS, spec=StoredSpec(spec.model_dump(mode="json")))
    assert starts.timing(wide, None).clock_skew_ms is None
    assert starts.skew(NODE.model_copy(update={"marks": {}}), T) is None
    assert starts.skew(NODE, None) is None


def test_a_later_attempt_begins_with_the_schedulers_pass() -> None:
    assert next(iter(shown(replace(MOMENTS, number=2)))) == "scheduling"


def test_a_report_may_come_before_the_first_step() -> None:
    marks = {**NODE.marks, StartMark.STEPPED: 80_000}
    node = NODE.model_copy(update={"marks": marks})
    stepped = replace(MOMENTS, start=StoredStart(looked_us=T + 12_000, node=node))
    assert list(shown(stepped, T + 90_000))[-2:] == ["first report", "first step"]
    assert list(shown(stepped, T + 110_000))[-2:] == ["first step", "first report"]


def test_what_was_never_told_is_left_out() -> None:
    bare = replace(MOMENTS, received_us=None, start=None)
    assert shown(bare) == {"scheduling": 10}
    assert starts.timing(bare, None).warm is None
