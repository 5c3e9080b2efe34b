"""A process waits at its exit for threads that still run."""

import hashlib
import subprocess
import sys
import threading

from torchyard.injob import gloo

SCRIPT = """
import hashlib, os, threading
from torchyard.injob import gloo

gloo.wait_for_threads.__defaults__ = (60.0,)  # on a busy machine the thread takes longer than anybody would wait
gloo.finish_at_exit()

def compute():
    hashlib.pbkdf2_hmac("sha256", b"", b"", 100_000)  # without the GIL, as gloo's threads
    os.write(1, b"done")

threading.Thread(target=compute, daemon=True).start()
"""


def test_a_thread_that_runs_is_waited_for() -> None:
    ended = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, timeout=60, check=True)
    assert ended.stdout == b"done"


def test_one_that_sleeps_is_not() -> None:
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    assert gloo.wait_for_threads(60)
    stop.set()
    thread.join()


def test_one_that_does_not_end_keeps_nobody() -> None:
    stop = threading.Event()

    def compute() -> None:
        while not stop.is_set():
            hashlib.pbkdf2_hmac("sha256", b"", b"", 10_000)

    thread = threading.Thread(target=compute)
    thread.start()
    assert not gloo.wait_for_threads(0.05)
    stop.set()
    thread.join()
