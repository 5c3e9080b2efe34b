"""Slurm on one node, with what its page about high throughput advises as far as it suits jobs that come one by one."""

import os
import pwd
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.peers import install, polling
from benchmarks.peers.interface import Client, NotInstalledError, Peer
from benchmarks.peers.processes import Processes, free_port, started

#: No accounting, a queue in order of arrival and a scheduling pass at once: what the page says of batch_sched_delay and
#: defer serves hundreds of submissions a second, and would let each of these wait.
CONFIGURATION = """ClusterName=bench
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldPort={controller}
SlurmdPort={node}
SlurmctldDebug=error
SlurmdDebug=error
MpiDefault=none
SwitchType=switch/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
AccountingStorageType=accounting_storage/none
PriorityType=priority/basic
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0,default_queue_depth=100
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MinJobAge=10
MessageTimeout=30
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=bench Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


class CommandLine:
    """``sbatch``."""

    def __init__(self, processes: Processes) -> None:
        self._processes = processes

    def submit(self, command: Sequence[str], slots: int = 1) -> str:
        script = self._processes.folder / "job.sh"
        script.write_text('#!/bin/sh\nexec "$@"\n')
        words = ["--parsable", "--output", "/dev/null", "--ntasks", "1", "--cpus-per-task", str(slots)]
        return self._processes.run(["sbatch", *words, str(script), *command]).strip()

    def wait(self, job: str) -> None:
        polling.until_ended(lambda: self._state(job), good="completed")

    def up(self) -> bool:
        return self._processes.succeeds(["sh", "-c", "sinfo --noheader --format %T | grep -qx idle"])

    def _state(self, job: str) -> str:
        return self._processes.run(["squeue", "--noheader", "--states", "all", "--jobs", job, "--format", "%T"]).strip()


def _installed() -> str:
    if os.geteuid() != 0:
        raise NotInstalledError("needs root: a node starts jobs as their users")
    install.debian("munge", "munged")
    return install.debian("slurm-wlm", "slurmctld")


@contextmanager
def _start(folder: Path) -> Iterator[Client]:
    for name in ("state", "spool"):
        (folder / name).mkdir()
    user = pwd.getpwuid(os.geteuid()).pw_name
    configuration = folder / "slurm.conf"
    ports = {"controller": free_port(), "node": free_port()}
    configuration.write_text(CONFIGURATION.format(host=socket.gethostname(), user=user, folder=folder, **ports))
    with started(folder, SLURM_CONF=str(configuration)) as processes:
        _authenticate(processes, folder)
        processes.daemon(["slurmctld", "-D", "-f", str(configuration)])
        processes.daemon(["slurmd", "-D", "-f", str(configuration)])
        client = CommandLine(processes)
        polling.until_up(client.up)
        yield client


def _authenticate(processes: Processes, folder: Path) -> None:
    key, door = folder / "munge.key", folder / "munge.socket"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    places = [f"--{name}-file={folder}/munge.{end}" for name, end in (("log", "log"), ("pid", "pid"), ("seed", "seed"))]
    threads = ["--num-threads=10", "--foreground", "--force"]
    processes.daemon(["munged", *threads, f"--key-file={key}", f"--socket={door}", *places])
    polling.until_up(door.exists)


PEER = Peer(
    name="Slurm (sbatch)", install=_installed, start=_start, setting="no accounting, builtin scheduler, no delays"
)
