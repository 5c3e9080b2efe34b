"""Ray's SDK for jobs."""

import shlex
import sys
import time

import lines  # isort: skip
from ray.job_submission import JobStatus, JobSubmissionClient


class Client:
    """A connection to the head's dashboard."""

    def __init__(self, address: str) -> None:
        self._client = JobSubmissionClient(address)

    def submit(self, command: list[str], slots: int) -> str:
        return str(self._client.submit_job(entrypoint=shlex.join(command), entrypoint_num_cpus=slots))

    def wait(self, job: str) -> None:
        while not (status := self._client.get_job_status(job)).is_terminal():
            time.sleep(0.02)
        if status != JobStatus.SUCCEEDED:
            raise RuntimeError(self._client.get_job_info(job).message)


lines.serve(Client(sys.argv[1]))
