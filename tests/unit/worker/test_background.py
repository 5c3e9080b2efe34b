from collections.abc import Callable

import pytest

from worker.background import BackgroundTask


class Threads:
    """Threads that run when the test says so, if the system has some left."""

    def __init__(self) -> None:
        self.none_left = False
        self.waiting: list[Callable[[], None]] = []

    def spawn(self, function: Callable[[], None]) -> None:
        if self.none_left:
            raise RuntimeError("can't start new thread")
        self.waiting.append(function)


def test_it_is_idle_again_once_its_function_has_ended() -> None:
    threads, ran = Threads(), list[int]()
    task = BackgroundTask(threads.spawn)
    task.start(lambda: ran.append(1))
    assert not task.idle
    assert not task.wait(0)
    threads.waiting.pop()()
    assert (ran, task.idle, task.wait(0)) == ([1], True, True)


def test_it_is_idle_again_where_no_thread_could_be_had() -> None:
    threads = Threads()
    task = BackgroundTask(threads.spawn)
    threads.none_left = True
    with pytest.raises(RuntimeError, match="can't start new thread"):
        task.start(lambda: None)
    assert task.idle
