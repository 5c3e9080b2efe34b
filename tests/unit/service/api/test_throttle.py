from service.api.throttle import Throttle


def test_a_topic_is_told_at_once_and_then_once_in_its_interval() -> None:
    throttle = Throttle(lambda topic: 5.0 if topic == "slow" else 1.0)
    throttle.add(["fast", "slow", "fast"])
    assert throttle.take(0.0) == ["fast", "slow"]
    assert throttle.take(0.5) == []
    throttle.add(["slow", "fast"])
    assert throttle.wait_s(0.5, 15) == 0.5
    assert throttle.take(0.5) == []
    assert throttle.take(1.0) == ["fast"]
    assert throttle.wait_s(1.0, 15) == 4.0
    assert throttle.take(5.0) == ["slow"]
    assert throttle.wait_s(5.0, 15) == 15


def test_a_topic_that_was_quiet_is_told_at_once() -> None:
    throttle = Throttle(lambda _: 1.0)
    throttle.add(["a"])
    throttle.take(0.0)
    throttle.add(["a"])
    assert throttle.take(9.0) == ["a"]
