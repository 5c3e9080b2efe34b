"""Estimates are ordered, never negative, and come from the closest source that knows anything."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.db.records.spec import StoredSpec
from service.estimation import estimates
from service.estimation.estimates import EstimateInput, History, HistoryKey, Quantiles, StepProgress, history_key_of
from service.scheduler.model.jobs import EstimateSource

MINUTE = 60_000_000
HOUR = 60 * MINUTE
KIN = HistoryKey("vision", "ada", "digits")
times = st.integers(min_value=0, max_value=10**15)


def history(*minutes: int, key: HistoryKey = KIN) -> History:
    made = History()
    for each in minutes:
        made.add(key, each * MINUTE)
    return made


def minutes(quantiles: Quantiles) -> list[int]:
    return [round(each / MINUTE) for each in quantiles]


@given(st.lists(times, max_size=80), times)
def test_history_is_ordered_and_never_negative(actual: list[int], ran_us: int) -> None:
    known = History()
    for each in actual:
        known.add(KIN, each)
    found = known.raw(KIN, ran_us)
    assert (found is None) == (not actual)
    if found is not None:
        assert 0 <= found.quantiles.p10 <= found.quantiles.p50 <= found.quantiles.p90


@given(
    st.builds(
        StepProgress, steps_left=times, watched_steps=times, watched_us=times, silent_us=times, overhead_us=times
    ),
    st.none() | times,
    times,
)
def test_progress_and_limits_are_ordered_and_never_negative(
    progress: StepProgress, limit: int | None, ran: int
) -> None:
    given = EstimateInput(key=KIN, limit_us=limit, ran_us=ran, attempt_us=ran, progress=progress)
    found = estimates.raw(given, History())
    known = progress.watched_steps > 0 and progress.watched_us >= estimates.WATCHED_US
    assert (found is None) == (not known and limit is None)
    if found is not None:
        p10, p50, p90 = estimates.capped(found.quantiles, given)
        assert 0 <= p10 <= p50 <= p90
        assert limit is None or p90 <= max(0, limit - ran)


def test_a_few_jobs_tell_less_than_many() -> None:
    one, many = history(60).raw(KIN), history(*[60] * 60).raw(KIN)
    assert one is not None
    assert many is not None
    assert minutes(one.quantiles) == [15, 60, 240]
    assert minutes(many.quantiles) == [60, 60, 60]


def test_quantiles_are_those_of_the_next_value() -> None:
    found = history(*range(1, 60)).raw(KIN)
    assert found is not None
    assert minutes(found.quantiles) == [6, 30, 55]


def test_the_closest_history_counts() -> None:
    known = history(60)
    same_user, same_project, other = (
        HistoryKey("vision", "ada", "x"),
        HistoryKey("vision", "bob", "x"),
        HistoryKey("nlp", "ada", "digits"),
    )
    assert known.raw(same_user) is None, "one job says little of other work"
    known.add(KIN, 60 * MINUTE)
    known.add(KIN, 60 * MINUTE)
    found = [known.raw(key) for key in (KIN, same_user, same_project)]
    assert [each.basis for each in found if each] == ["history", "history-user", "history-project"]
    assert known.raw(other) is None


def test_what_a_job_has_run_already_is_known() -> None:
    known = history(*[10] * 20, *[60] * 20)
    found = known.raw(KIN, 20 * MINUTE)
    assert found is not None
    assert minutes(found.quantiles) == [40, 40, 40], "it is none of those that took ten minutes"
    outrun = known.raw(KIN, 90 * MINUTE)
    assert outrun is not None
    assert (outrun.basis, minutes(outrun.quantiles)) == ("outrun", [10, 90, 810])


def test_sources_in_their_order() -> None:
    progress = StepProgress(steps_left=90, watched_steps=10, watched_us=10 * MINUTE)
    unwatched = StepProgress(steps_left=90, watched_steps=10, watched_us=MINUTE // 60)
    everything = EstimateInput(key=KIN, limit_us=HOUR, progress=progress)

    def source(given: EstimateInput, known: History) -> EstimateSource | None:
        found = estimates.raw(given, known)
        return found.source if found else None

    assert source(everything, history(5)) is EstimateSource.PROGRESS
    assert source(EstimateInput(key=KIN, limit_us=HOUR, progress=unwatched), history(5)) is EstimateSource.HISTORY
    assert source(EstimateInput(key=KIN, limit_us=HOUR), History()) is EstimateSource.LIMIT
    assert source(EstimateInput(key=KIN), History()) is None


def test_steps_at_the_speed_so_far() -> None:
    found = estimates.from_progress(StepProgress(steps_left=90, watched_steps=100, watched_us=100 * MINUTE))
    assert found is not None
    assert minutes(found.quantiles)[1] == 90
    more = estimates.from_progress(
        StepProgress(steps_left=90, watched_steps=100, watched_us=100 * MINUTE, overhead_us=5 * MINUTE)
    )
    silent = estimates.from_progress(
        StepProgress(steps_left=90, watched_steps=100, watched_us=100 * MINUTE, silent_us=10 * MINUTE)
    )
    assert more is not None
    assert silent is not None
    assert (minutes(more.quantiles)[1], minutes(silent.quantiles)[1]) == (95, 80)


@pytest.mark.parametrize(
    ("spec", "same"),
    [
        ({"command": ["train.py", "--lr", "0.3", "--seed", "1", "--epochs", "5"]}, True),
        ({"command": ["train.py", "--lr", "1e-3", "--seed", "7", "--epochs", "5"]}, True),
        ({"command": ["train.py", "--lr", "-.5", "--seed", "7", "--epochs", "5"]}, True),
        ({"command": ["train.py", "--lr", "Infinity", "--seed", "7", "--epochs", "5"]}, True),
        ({"command": ["train.py", "--lr", "info", "--seed", "7", "--epochs", "5"]}, False),
        ({"command": ["train.py", "--lr", "--0.3", "--seed", "7", "--epochs", "5"]}, False),
        ({"command": ["train.py", "--lr", "1e-3", "--seed", "7", "--epochs", "50"]}, False),
        ({"command": ["train.py", "--lr", "0.3", "--seed", "1", "--epochs", "5"], "resources": {"gpus": 2}}, False),
        ({"command": ["test.py", "--lr", "0.3", "--seed", "1", "--epochs", "5"]}, False),
    ],
)
def test_trials_of_one_sweep_have_one_history(spec: dict[str, Any], same: bool) -> None:
    trial = StoredSpec({"command": ["train.py", "--lr", "0.1", "--seed", "0", "--epochs", "5"]})
    first = history_key_of("vision", "ada", trial)
    assert (history_key_of("vision", "ada", StoredSpec(spec)) == first) == same


def test_recipes_differ_by_what_takes_time() -> None:
    recipe = {"model": "mlp", "epochs": 5, "seed": 1, "optim": {"name": "adam", "lr": 0.1}}
    keys = [
        history_key_of("vision", "ada", StoredSpec({"recipe": recipe | change}))
        for change in ({}, {"seed": 2}, {"optim": {"name": "adam", "lr": 0.2}}, {"epochs": 6})
    ]
    assert keys[0] == keys[1] == keys[2] != keys[3]
    assert HistoryKey.parse(str(keys[0])) == keys[0]
    with pytest.raises(ValueError, match="unpack"):
        HistoryKey.parse("default/ada")
