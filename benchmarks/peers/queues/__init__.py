"""The queues that are measured, ours first."""

from collections.abc import Sequence

from benchmarks.peers.interface import Peer
from benchmarks.peers.queues import celery_alone, gflow, gpuq, hyperqueue, ray_jobs, slurm, task_spooler, torchyard

ALL: Sequence[Peer] = (
    *torchyard.PEERS,
    *gpuq.PEERS,
    gflow.PEER,
    task_spooler.PEER,
    slurm.PEER,
    celery_alone.PEER,
    hyperqueue.PEER,
    *ray_jobs.PEERS,
)
