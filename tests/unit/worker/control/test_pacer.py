import threading
import time

from worker.control import pacer
from worker.control.pacer import Pacer


def test_a_nudge_ends_the_wait_even_when_it_came_before() -> None:
    pace = Pacer()
    pace.nudge()
    began = time.monotonic()
    assert pace.wait(60)
    assert time.monotonic() - began < 10


def test_one_nudge_is_good_for_one_wait() -> None:
    pace = Pacer()
    pace.nudge()
    pace.nudge()
    assert pace.wait(60)
    assert pace.wait(0.01)


def test_a_change_shortens_the_wait_but_does_not_end_it() -> None:
    pace, began = Pacer(), time.monotonic()
    threading.Timer(0.01, pace.change).start()
    assert pace.wait(60)
    assert pacer.CHANGE_S <= time.monotonic() - began < 30


def test_stop_ends_every_wait() -> None:
    pace = Pacer()
    threading.Timer(0.01, pace.stop).start()
    assert not pace.wait(60)
    assert not pace.wait(60)
