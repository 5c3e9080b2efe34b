"""What the worker imports."""

import os
from pathlib import Path

from benchmarks.peers.queues.celery_alone import application

app = application(Path(os.environ["BENCH_FOLDER"]))
