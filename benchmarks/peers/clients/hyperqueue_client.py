"""HyperQueue's own server and worker, with its client, in one process: the way its Python package offers."""

import sys

import lines  # isort: skip
from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig
from hyperqueue.ffi.protocol import ResourceRequest


class Client:
    """Jobs of one task each."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._client = cluster.client()
        self._jobs: dict[str, object] = {}

    def submit(self, command: list[str], slots: int) -> str:
        job = Job(default_workdir=".")
        job.program(command, resources=ResourceRequest(cpus=slots), stdout=None, stderr=None)
        submitted = self._client.submit(job)
        self._jobs[str(submitted.id)] = submitted
        return str(submitted.id)

    def wait(self, job: str) -> None:
        self._client.wait_for_jobs([self._jobs.pop(job)])


with LocalCluster(sys.argv[1], WorkerConfig(cores=2)) as cluster:
    lines.serve(Client(cluster))
