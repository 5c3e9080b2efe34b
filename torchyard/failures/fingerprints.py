"""Table of well-known failures: how to recognise them, whose fault they are, and what to do about them."""

import re
from dataclasses import dataclass
from enum import StrEnum
from signal import SIGBUS, SIGKILL, SIGSEGV, Signals
from typing import Final

ADDRESS_IN_USE: Final = "address-in-use"
DISK_FULL: Final = "disk-full"
DISK_LIMIT: Final = "disk-limit"
GPU_FAULT: Final = "gpu-fault"
GPU_TRESPASS: Final = "gpu-trespass"
LOST: Final = "lost"
LOST_RANK: Final = "lost-rank"
MEMORY_LIMIT: Final = "memory-limit"
MISSING_MODULE: Final = "missing-module"
NCCL_TIMEOUT: Final = "nccl-timeout"
NODE_MEMORY: Final = "node-memory"
NO_RANKS: Final = "no-ranks"
NO_STORE: Final = "no-store"
NO_TORCH: Final = "no-torch"
OUT_OF_MEMORY: Final = "out-of-memory"
OWN_PROCESSES: Final = "own-processes"
PROCESS_LIMIT: Final = "process-limit"
SINGLE_SAMPLE: Final = "single-sample"


class Blame(StrEnum):
    """Party whose fault a failure is."""

    #: The box's or the network's: the same job may well succeed elsewhere or later.
    BOX = "box"
    #: The job's: it would fail the same way again.
    JOB = "job"
    #: Nobody can tell from outside.
    UNCLEAR = "unclear"


@dataclass(frozen=True, kw_only=True)
class Fingerprint:
    """One failure that is known by its words, or by the signal that ends the process."""

    name: str
    blame: Blame
    advice: str
    """Goes on after "rank 0 exited with code 1: "; ``{0}`` is what the pattern's group holds."""
    pattern: re.Pattern[str] | None = None
    """Searched in the failing rank's traceback, or in its last lines."""
    unnamed: str = "that it names"
    """Stands for ``{0}`` where nothing is known."""
    signal: Signals | None = None
    """Of a process that was killed without a word."""


#: Xids that tell of broken hardware rather than of a program's fault: memory, NVLink, bus, GPU system processor.
GPU_XIDS: Final = frozenset({48, 64, 74, 79, 94, 95, 119, 120})

#: What precedes the words in the line of an uncaught exception, so that a log that only mentions them does not match.
_RAISED = r"^[\w.]{0,100}(?:Error|Exception|Interrupted)\b[^\n]*?"
#: What precedes the words of the C++ runtime when it ends a process.
_ABORTED = r"^ *what\(\): [^\n]*?"


def _error(words: str) -> re.Pattern[str]:
    return re.compile(rf"(?:{_RAISED}|{_ABORTED})(?:{words})", re.MULTILINE)


#: Of those that match, the one whose words come last in the text counts; of those that match at one place, the first.
FINGERPRINTS: tuple[Fingerprint, ...] = (
    Fingerprint(
        name=GPU_FAULT,
        blame=Blame.BOX,
        unnamed="its Xid is in the kernel's log",
        pattern=re.compile(
            rf"(?:{_RAISED}|{_ABORTED})(?:CUDA error|CUDA driver error|cuda runtime error \(\d+\)|NVML_\w+|NVMLError\w*"
            r"|Unable to determine the device handle)[^\n]*?"
            r"(?:uncorrectable (?:ECC|NVLink) error|hardware stack error|GPU is lost|GPU has fallen off the bus)"
            r"|^pynvml\.NVMLError_GpuIsLost"
            rf"|^(?:\[[^\]\n]*\] )?NVRM: Xid \(PCI:[0-9a-fA-F:.]+\): (?:{'|'.join(map(str, sorted(GPU_XIDS)))})\b",
            re.MULTILINE,
        ),
        advice="the GPU failed ({0}: uncorrectable memory, a broken link, or off the bus): `dmesg` on the node tells "
        "more; reset the GPU, or reboot the node",
    ),
    Fingerprint(
        name=NCCL_TIMEOUT,
        blame=Blame.BOX,
        pattern=re.compile(
            rf"(?:{_RAISED}|{_ABORTED}|^\[E[^\n\]]*\.cpp:\d+\][^\n]*?)Watchdog caught collective operation timeout",
            re.MULTILINE,
        ),
        advice="a collective of NCCL got no answer in time: another rank hangs or was lost, or the link between GPUs "
        "or nodes broke; all ranks must call the same collectives in the same order",
    ),
    Fingerprint(
        name=OUT_OF_MEMORY,
        blame=Blame.JOB,
        pattern=_error(r"CUDA out of memory\.|CUDA error: out of memory|CUBLAS_STATUS_ALLOC_FAILED"),
        advice="the GPU's memory, or the job's share of it (resources.gpu_share), was too small: take a smaller "
        "batch_size (and accumulate), mixed precision, activation checkpointing, or a strategy that shards the model "
        "(fsdp)",
    ),
    Fingerprint(
        name="host-memory",
        blame=Blame.UNCLEAR,
        pattern=re.compile(
            r"^MemoryError\b|(?:^RuntimeError: )(?:[^\n]*DefaultCPUAllocator: (?:can't|not enough)[^\n]*memory"
            r"|DataLoader worker \([^)\n]*\) is killed by signal: Killed)"
            r"|^OSError: \[Errno 12\]",
            re.MULTILINE,
        ),
        advice="main memory ran out: ask for it (resources.memory), or lower num_workers and what each of them holds",
    ),
    Fingerprint(
        name=DISK_LIMIT,
        blame=Blame.JOB,
        advice="write less, remove what is no longer needed, or ask the administrator for more (TORCHYARD_DISK_LIMIT, "
        "TORCHYARD_USER_DISK_LIMIT)",
    ),
    Fingerprint(
        name=GPU_TRESPASS,
        blame=Blame.JOB,
        advice="use the GPUs of CUDA_VISIBLE_DEVICES alone, and of a shared one no more than your share; ask for more "
        "(resources.gpus, resources.gpu_share)",
    ),
    Fingerprint(
        name=PROCESS_LIMIT,
        blame=Blame.JOB,
        advice="start fewer at a time, or ask the administrator for more (TORCHYARD_PROCESS_LIMIT)",
    ),
    # Seen from outside: the kernel kills without a word.
    Fingerprint(
        name=MEMORY_LIMIT,
        blame=Blame.JOB,
        advice="ask for more (resources.memory), or lower num_workers and what each of them holds",
    ),
    Fingerprint(
        name=NODE_MEMORY,
        blame=Blame.UNCLEAR,
        advice="name what it needs (resources.memory), so that it starts where so much is free, and the "
        "kernel spares it before those that name nothing",
    ),
    Fingerprint(
        name="shared-memory",
        blame=Blame.JOB,
        pattern=re.compile(
            r"^RuntimeError: (?:DataLoader worker \([^)\n]*\) is killed by signal: Bus error"
            r"|unable to (?:write to|allocate shared memory\(shm\) for|mmap [^\n]* from) file </torch_)"
            r"|^(?:torch\.)?_?\w*Error: [^\n]*No space left on device[^\n]*/dev/shm",
            re.MULTILINE,
        ),
        advice="the shared memory is full (/dev/shm) through which DataLoader's workers hand batches over: lower "
        "num_workers or the batch size, or have the administrator enlarge it (in a container: --shm-size)",
    ),
    Fingerprint(
        name="not-finite",
        blame=Blame.JOB,
        pattern=re.compile(
            r"^\w*(?:Error|Exception): [^\n]*\bloss\b[^\n]*\b(?:nan|inf|not finite|non-finite)\b"
            r"|^RuntimeError: Function '\w+' returned nan values"
            r"|^FloatingPointError: "
            r"|^Loss is (?:nan|inf|-inf), stopping training",
            re.MULTILINE | re.IGNORECASE,
        ),
        advice="the loss is no finite number any more: lower the learning rate, clip gradients, warm up, take bf16 "
        "instead of fp16, and look for bad samples in the data",
    ),
    Fingerprint(
        name=ADDRESS_IN_USE,
        blame=Blame.UNCLEAR,
        pattern=re.compile(rf"{_RAISED}(?:EADDRINUSE|address already in use)", re.MULTILINE | re.IGNORECASE),
        advice="the port that it listens at is in use on this box: do not fix one, take MASTER_PORT from the "
        "environment (`init_method='env://'`), or let the system choose (port 0)",
    ),
    Fingerprint(
        name=LOST_RANK,
        blame=Blame.UNCLEAR,
        pattern=re.compile(
            r"^(?:[\w.]+\.)?PeerError: "
            rf"|{_RAISED}gloo[^\n]*(?:Timed out waiting|Connection (?:closed|reset) by peer)"
            rf"|{_RAISED}(?:Timed out after \d+ seconds waiting for clients|Connection was likely closed)"
            r"|^ncclRemoteError: ",
            re.MULTILINE,
        ),
        advice="it waited in vain for another rank, which hangs, failed or was killed: that rank's log says more",
    ),
    # Seen from outside: what waits in vain says nothing, and what fails blames the network.
    Fingerprint(
        name=OWN_PROCESSES,
        blame=Blame.JOB,
        advice="the script starts processes itself (mp.spawn), which do not find each other under torchrun: say "
        "launcher: python (yard run: --launcher python), or leave launcher out",
    ),
    Fingerprint(
        name=NO_STORE,
        blame=Blame.JOB,
        advice="the ranks look for one another at an address that nobody has opened: leave MASTER_ADDR and MASTER_PORT "
        "as torchrun has set them (`init_method='env://'`)",
    ),
    Fingerprint(
        name=NO_RANKS,
        blame=Blame.JOB,
        pattern=_error(
            r"Error initializing torch\.distributed using env:// rendezvous: environment variable \w+ expected"
        ),
        advice="the script joins a process group, and its command has started no ranks: give the script itself "
        "(`yard run --gpus 2 -- python train.py`), which then runs under torchrun, or have the command start torchrun",
    ),
    Fingerprint(
        name=NO_TORCH,
        blame=Blame.JOB,
        pattern=re.compile(
            r"^(/[^\s:]{1,300}): (?:Error while finding module specification for|No module named) '?torch\b",
            re.MULTILINE,
        ),
        unnamed="the job's Python",
        advice="{0} has no torch, which torchrun needs: `{0} -m pip install torch`, point python: to an environment "
        "that has it, or say launcher: python for a script that needs none",
    ),
    Fingerprint(
        name=SINGLE_SAMPLE,
        blame=Blame.JOB,
        pattern=_error("Expected more than 1 value per channel when training"),
        advice="batch normalisation got a single sample, as an epoch's last batch may have: leave that out with "
        "drop_last (a key of recipes, an argument of DataLoader), or change the batch size",
    ),
    Fingerprint(
        name="driver-mismatch",
        blame=Blame.JOB,
        pattern=_error(
            "no kernel image is available for execution|CUDA driver version is insufficient"
            "|NVIDIA driver on your system is too old|Torch not compiled with CUDA enabled"
        ),
        advice="this build of torch does not fit the node's GPU or driver: install one for its CUDA version, or point "
        "python: to an environment that has it",
    ),
    Fingerprint(
        name="device-assert",
        blame=Blame.JOB,
        pattern=_error("CUDA error: (?:device-side assert triggered|an illegal memory access was encountered)"),
        advice="a kernel met an index or an address that does not exist, often a label outside the classes: run it "
        "once with env: {{CUDA_LAUNCH_BLOCKING: '1'}} to see which line",
    ),
    Fingerprint(
        name=MISSING_MODULE,
        blame=Blame.JOB,
        pattern=re.compile(r"^ModuleNotFoundError: No module named '([\w.]{1,100})'", re.MULTILINE),
        advice="the module {0} is not in the job's environment: install it there, or point python: to the environment "
        "that has it",
    ),
    Fingerprint(
        name="import-error",
        blame=Blame.JOB,
        # Scripts and libraries raise either with words of their own, which often say what to install.
        pattern=re.compile(
            r"^(?:ModuleNotFoundError|ImportError)(?:: (?!attempted relative import)([^\n]{1,200})[^\n]*)?$",
            re.MULTILINE,
        ),
        unnamed="its traceback shows where",
        advice="a module cannot be imported ({0}): the environment that python: names does not fit the code",
    ),
    Fingerprint(
        name=DISK_FULL,
        blame=Blame.BOX,
        pattern=re.compile(r"^\w*Error: (?:\[Errno 28\]|[^\n]*No space left on device)", re.MULTILINE),
        advice="a disk is full: make room on the node, or write elsewhere",
    ),
    Fingerprint(
        name="missing-file",
        blame=Blame.JOB,
        pattern=re.compile(r"^FileNotFoundError: \[Errno 2\] [^\n]*?(?:'([^'\n]{1,200})'|$)", re.MULTILINE),
        advice="the file {0} is not on the node: give its whole path, join its folder with link:, put it into the code "
        "(what .gitignore names is not in it), or run the folder itself with live:",
    ),
    Fingerprint(
        name="no-input",
        blame=Blame.JOB,
        pattern=re.compile(r"^EOFError: EOF when reading a line", re.MULTILINE),
        advice="a job has no standard input: give what it asks for as an argument, or in a file of the code",
    ),
    Fingerprint(
        name="missing-script",
        blame=Blame.JOB,
        pattern=re.compile(r"^\S{1,300}: can't open file '([^'\n]{1,200})': \[Errno 2\]", re.MULTILINE),
        advice="the script {0} is not on the node: mend its path, or put it into the code",
    ),
    Fingerprint(
        name="permission",
        blame=Blame.JOB,
        pattern=re.compile(r"^PermissionError: \[Errno (?:1|13)\] [^\n]*?(?:'([^'\n]{1,200})'|$)", re.MULTILINE),
        advice="the job's user may not use {0}: change who may, or write below TORCHYARD_OUTPUT_DIR",
    ),
    Fingerprint(
        name="code-error",
        blame=Blame.JOB,
        pattern=re.compile(
            r"^(?:SyntaxError|IndentationError|TabError|NameError|UnboundLocalError|AttributeError|TypeError"
            r"|NotImplementedError): |^ImportError: attempted relative import",
            re.MULTILINE,
        ),
        advice="an error in the code: the traceback shows the line",
    ),
    Fingerprint(
        name="killed",
        blame=Blame.UNCLEAR,
        signal=SIGKILL,
        advice="often the kernel's out-of-memory killer: ask for main memory (resources.memory), or lower num_workers",
    ),
    Fingerprint(
        name="bus-error",
        blame=Blame.UNCLEAR,
        signal=SIGBUS,
        advice="often a full /dev/shm: lower num_workers",
    ),
    Fingerprint(
        name="crash",
        blame=Blame.UNCLEAR,
        signal=SIGSEGV,
        advice="a crash in native code",
    ),
    Fingerprint(
        name=LOST,
        blame=Blame.BOX,
        advice="the node, or the process that guarded the attempt, was lost",
    ),
)
