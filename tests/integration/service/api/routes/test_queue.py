"""The queue and the reasons while jobs come: each answer is of one moment."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from tests.support.live import Live, live_service, serve, yard_home  # noqa: F401  fixtures
from tests.support.specs import spec

SUBMITTERS, READERS, JOBS = 4, 4, 15


def test_the_queue_answers_while_jobs_are_submitted(live_service: Live) -> None:  # noqa: F811
    done, answers = threading.Event(), Counter[tuple[str, int]]()
    client = live_service.client

    def submit() -> None:
        for _ in range(JOBS):
            made = client.post("/api/v1/jobs", json=spec()).raise_for_status().json()
            answers["why", client.get(f"/api/v1/jobs/{made['id']}/why").status_code] += 1

    def read() -> None:
        while not done.is_set():
            answers["queue", client.get("/api/v1/queue").status_code] += 1

    with ThreadPoolExecutor(SUBMITTERS + READERS) as threads:
        readers = [threads.submit(read) for _ in range(READERS)]
        try:
            for each in [threads.submit(submit) for _ in range(SUBMITTERS)]:
                each.result()
        finally:
            done.set()
        for each in readers:
            each.result()
    assert {status for _, status in answers} == {200}, answers
    assert answers["why", 200] == SUBMITTERS * JOBS
