"""Names inside an attempt folder, and the environment variables that lead there.

The one owner of the format: the worker, the shim and the code inside the job read it from here. Standard library
only, Python 3.9.

    attempts/<attempt id>/            0755, the worker's
        lock                          held by whoever starts or runs the attempt
        started                       fsynced before the shim is forked: never start again
        control.json                  what the job is asked to do; written by the shim, polled by the ranks
        yard/                         0700, the worker's: nonce, launch.json, command.json, start.json, shim.json,
                                      result.json, result.json.pipe: by which the shim tells it,
                                      baseline.json: what was laid out, tmp: a link to the job's TMPDIR
            trackers/                 points read from the files of the job's own trackers
        logs/                         rank-0.log, rank-1.log, …, launcher.log: raw bytes, appended
        restore/                      the checkpoint to resume from, if any
        job/                          the job user's
            code/                     the snapshot, unpacked; the working folder
            metrics/                  one file of JSON lines for each process, and one that counts its records
            marks/                    polled-<rank>, exit-<rank>.json, pid-<rank>, start-<rank>,
                                      imported-<rank>, note-<kind>-<rank>.json
            checkpoints/step-<n>/     committed checkpoints; step-<n>.tmp while being written
            output/                   TORCHYARD_OUTPUT_DIR
            outcome.json              written after a stop: by rank 0 the step at which all was saved, else by a
                                      rank that could not save why
            rendezvous                by which the ranks of a recipe with `rendezvous: file` meet
"""

import os

ATTEMPT_ID = "TORCHYARD_ATTEMPT_ID"
JOB_ID = "TORCHYARD_JOB_ID"
ATTEMPT_DIR = "TORCHYARD_ATTEMPT_DIR"
OUTPUT_DIR = "TORCHYARD_OUTPUT_DIR"
RESTORE_DIR = "TORCHYARD_RESTORE_DIR"
#: Trackers whose files the node reads, separated by commas.
READ_TRACKERS = "TORCHYARD_TRACKERS"
#: How many devices (GPUs or CPU slots) the attempt has on this node.
DEVICES = "TORCHYARD_DEVICES"
#: Bytes of each GPU's memory that are the attempt's; absent: the GPUs are its own.
GPU_SHARE = "TORCHYARD_GPU_SHARE"
#: Seconds after which a checkpoint is due, or "never"; absent: only when asked for, or as `attach` chooses.
CHECKPOINT_EVERY = "TORCHYARD_CHECKPOINT_EVERY"
NEVER = "never"
#: Bytes that checkpoints which nobody asked for leave free on the disk.
DISK_FLOOR = "TORCHYARD_DISK_FLOOR"
#: "max" or "min", a space, and the metric by which the best checkpoint is kept; absent: none is.
KEEP_BEST = "TORCHYARD_KEEP_BEST"
#: Where the trainer keeps data and weights for all jobs; the worker passes its own on.
DATA = "TORCHYARD_DATA"

LOCK = "lock"
STARTED = "started"
CONTROL = "control.json"
YARD = "yard"
LAUNCH = os.path.join(YARD, "launch.json")
COMMAND = os.path.join(YARD, "command.json")
SHIM = os.path.join(YARD, "shim.json")
#: When the worker heard of the attempt, and came how far.
START = os.path.join(YARD, "start.json")
RESULT = os.path.join(YARD, "result.json")
#: There while no rank has joined a process group, after the time that this takes.
UNJOINED = os.path.join(YARD, "unjoined")
NONCE = os.path.join(YARD, "nonce")
TMP = os.path.join(YARD, "tmp")
TRACKERS = os.path.join(YARD, "trackers")
LOGS = "logs"
RESTORE = "restore"
JOB = "job"
CODE = os.path.join(JOB, "code")
METRICS = os.path.join(JOB, "metrics")
MARKS = os.path.join(JOB, "marks")
CHECKPOINTS = os.path.join(JOB, "checkpoints")
OUTPUT = os.path.join(JOB, "output")
#: Where MLflow and Trackio keep their runs, unless the job has chosen another place.
MLFLOW_STORE = os.path.join(OUTPUT, "mlruns")
TRACKIO_STORE = os.path.join(OUTPUT, "trackio")
OUTCOME = os.path.join(JOB, "outcome.json")
RENDEZVOUS = os.path.join(JOB, "rendezvous")

#: The file in a committed checkpoint folder that lists its files and their sizes.
MANIFEST = "manifest.json"
#: The file in a checkpoint that a framework has written for itself: ``place`` is where it lay in the working folder.
ADOPTED = "adopted.json"
#: Suffix of a checkpoint folder that is still being written.
TEMPORARY = ".tmp"
LAUNCHER_LOG = "launcher.log"
#: Suffix of the file beside a process's metrics that says how many records it took, should the disk be full.
TAKEN = ".taken"


def rank_log(rank):
    # type: (int) -> str
    """File name of a rank's log below ``logs/``."""
    return "rank-%d.log" % rank


def checkpoint_name(step):
    # type: (int) -> str
    """Folder name of the checkpoint taken at a step; names sort by step."""
    return "step-%09d" % step


def polled_mark(rank):
    # type: (int) -> str
    """File name below ``job/marks/`` that says: this rank polls ``control.json``."""
    return "polled-%d" % rank


def start_mark(rank):
    # type: (int) -> str
    """File name below ``job/marks/`` of the moments of a rank's start, a line each."""
    return "start-%d" % rank


def imported_mark(rank):
    # type: (int) -> str
    """File name below ``job/marks/`` of the installed modules that a rank has imported, a line each."""
    return "imported-%d" % rank


def note_mark(kind, rank):
    # type: (str, int) -> str
    """File name below ``job/marks/`` of a rank's note to the job's owner."""
    return "note-%s-%d.json" % (kind, rank)


def mlflow_mark(rank):
    # type: (int) -> str
    """File name below ``job/marks/`` that names the stores of a rank's MLflow."""
    return "mlflow-%d.json" % rank


def renamed_mark(rank):
    # type: (int) -> str
    """File name below ``job/marks/`` that says under which names a rank reports what its trackers log."""
    return "renamed-%d.json" % rank
