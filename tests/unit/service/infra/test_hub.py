import asyncio
import threading
import time

from service.infra.hub import ANY, Hub, Listener


def test_a_notification_from_another_thread_wakes_a_listener() -> None:
    async def follow() -> frozenset[str]:
        hub = Hub()
        async with hub.listen("job:1", "jobs") as listener:
            threading.Thread(target=hub.notify, args=("job:1",)).start()
            return await listener.wait(60)

    assert asyncio.run(follow()) == {"job:1"}


def test_notifications_before_the_wait_are_one_wake_up() -> None:
    async def follow() -> tuple[frozenset[str], frozenset[str]]:
        hub = Hub()
        async with hub.listen("jobs", "queue") as listener:
            for _ in range(1000):
                hub.notify("jobs", "queue", "another")
            return await listener.wait(60), await listener.wait(0.01)

    assert asyncio.run(follow()) == ({"jobs", "queue"}, frozenset())


def test_a_group_of_topics_can_be_followed() -> None:
    async def follow() -> frozenset[str]:
        hub = Hub()
        async with hub.listen("job:*") as listener:
            hub.notify("job:1", "job:2", "node:a", "jobs")
            return await listener.wait(60)

    assert asyncio.run(follow()) == {"job:1", "job:2"}


def test_that_anything_may_have_changed_wakes_everybody() -> None:
    async def follow() -> list[frozenset[str]]:
        hub = Hub()
        async with hub.listen("job:1") as one, hub.listen("node:*") as other:
            hub.notify(ANY)
            return [await one.wait(60), await other.wait(60)]

    assert asyncio.run(follow()) == [{ANY}, {ANY}]


def test_nothing_is_kept_of_listeners_that_left() -> None:
    async def follow() -> Hub:
        hub = Hub()
        async with hub.listen("job:1", "job:*"):
            pass
        return hub

    assert not asyncio.run(follow())._listeners


def test_the_end_of_the_service_wakes_everybody_at_once() -> None:
    async def follow() -> tuple[frozenset[str], bool, float]:
        hub = Hub()
        async with hub.listen("jobs") as listener:
            threading.Timer(0.05, hub.close).start()
            began = time.monotonic()
            topics = await listener.wait(60)
            await listener.wait(60)
            return topics, listener.closing, time.monotonic() - began

    topics, closing, took = asyncio.run(follow())
    assert topics == frozenset()
    assert closing
    assert took < 10


def test_a_listener_whose_loop_is_gone_does_no_harm() -> None:
    hub = Hub()

    async def leave() -> None:
        hub._listeners["jobs"].add(await _abandoned(hub))

    asyncio.run(leave())
    hub.notify("jobs")


async def _abandoned(hub: Hub) -> Listener:
    async with hub.listen("other") as listener:
        return listener


def test_many_threads_lose_no_wake_up() -> None:
    async def follow() -> set[str]:
        hub = Hub()
        seen: set[str] = set()
        async with hub.listen("job:*") as listener:
            threads = [
                threading.Thread(target=lambda n=n: [hub.notify(f"job:{n}-{k}") for k in range(200)]) for n in range(4)
            ]
            for thread in threads:
                thread.start()
            while len(seen) < 800:
                topics = await listener.wait(60)
                assert topics
                seen |= topics
        for thread in threads:
            thread.join()
        return seen

    assert len(asyncio.run(follow())) == 800
