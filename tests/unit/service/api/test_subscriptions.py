import asyncio

import pytest

from service.api.subscriptions import MAX_LOGS, MAX_WAITING, Kind, Subscriber, Topic, parse, stream_event
from service.errors import ProblemError


@pytest.mark.parametrize(
    ("name", "topic"),
    [
        ("jobs", Topic("jobs", Kind.JOBS)),
        ("job:job-1", Topic("job:job-1", Kind.JOB, "job-1")),
        ("metrics:job-1:AbC_-", Topic("metrics:job-1:AbC_-", Kind.METRICS, "job-1", "AbC_-")),
        ("log:j:2:-1:77", Topic("log:j:2:-1:77", Kind.LOG, "j", "", 2, -1, 77)),
    ],
)
def test_topics_are_read_from_their_names(name: str, topic: Topic) -> None:
    assert parse(name) == topic


@pytest.mark.parametrize("name", ["", "job", "job:", "jobs:1", "log:j:1", "metrics:j", "job:a b", "log:j:1:1:-1"])
def test_strange_names_are_refused(name: str) -> None:
    with pytest.raises(ProblemError) as refused:
        parse(name, "topic")
    assert [each.field for each in refused.value.errors] == ["topic"]


def test_a_reader_that_is_too_slow_is_given_up() -> None:
    async def run() -> None:
        subscriber = Subscriber("user")
        for _ in range(MAX_WAITING):
            subscriber.put(stream_event("jobs", {}))
        assert not subscriber.ended
        subscriber.put(stream_event("jobs", {}))
        assert subscriber.ended

    asyncio.run(run())


def test_logs_wait_for_room() -> None:
    async def run() -> None:
        subscriber = Subscriber("user")
        for _ in range(MAX_LOGS):
            await subscriber.wait_and_put(stream_event("log", {}))
        waiting = asyncio.create_task(subscriber.wait_and_put(stream_event("log", {"last": True})))
        await asyncio.sleep(0)
        assert not waiting.done()
        assert len(await subscriber.take(1)) == MAX_LOGS
        await waiting
        assert await subscriber.take(1) == [stream_event("log", {"last": True})]
        subscriber.end()
        assert await subscriber.take(60) == []

    asyncio.run(run())
