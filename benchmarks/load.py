"""Closed-loop load from several processes, so that the client's own interpreter is not the limit."""

import multiprocessing
import time
from collections.abc import Callable

Work = Callable[[int, float], int]


def _work(work: Work, worker: int, begin: float, seconds: float, counts: "multiprocessing.Queue[int]") -> None:
    time.sleep(max(0.0, begin - time.time()))
    counts.put(work(worker, begin + seconds))


def rate(work: Work, *, workers: int = 4, seconds: float = 4.0) -> float:
    """Calls a second over all workers; `work(worker, until)` loops until then and answers its count."""
    context = multiprocessing.get_context("fork")
    counts: multiprocessing.Queue[int] = context.Queue()
    begin = time.time() + 0.2
    crew = [context.Process(target=_work, args=(work, n, begin, seconds, counts)) for n in range(workers)]
    for process in crew:
        process.start()
    total = sum(counts.get(timeout=seconds + 60) for _ in crew)
    elapsed = time.time() - begin
    for process in crew:
        process.join()
    return total / elapsed
