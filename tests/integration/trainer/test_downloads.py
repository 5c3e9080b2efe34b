"""Downloads by real ranks of several jobs, from a real server."""

import hashlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch.distributed as dist

from tests.support import http_files, ranks
from trainer.data import downloads
from trainer.data.downloads import DownloadSource
from trainer.exceptions import DownloadError

CONTENT = b"0123456789" * 300_000
CHECKSUM = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"


def obtained(url: str, roots: list[Path]) -> tuple[str, float]:
    """What this rank read, or was told; ranks have disks of their own where several roots are given."""
    dist.init_process_group("gloo")
    root = roots[dist.get_rank() % len(roots)]
    source = DownloadSource(urls=(url,), file="set.bin", checksum=CHECKSUM)
    try:
        found = downloads.obtain((source,), root, (root / "set.bin").read_bytes)
        answer = hashlib.sha256(found).hexdigest()
    except DownloadError as error:
        answer = str(error)
    dist.barrier()
    dist.destroy_process_group()
    return answer, downloads.DOWNLOAD_TIME.seconds


def test_ranks_of_two_jobs_fetch_a_file_once(tmp_path: Path) -> None:
    with http_files.served() as files, ThreadPoolExecutor(2) as jobs:
        files.contents["set.bin"] = CONTENT
        started = [jobs.submit(ranks.run, obtained, 2, files.url("set.bin"), [tmp_path]) for _ in range(2)]
        results = [result for job in started for result in job.result()]
    assert [f"sha256:{answer}" for answer, _ in results] == [CHECKSUM] * 4
    assert files.requests == [("set.bin", 0)]
    assert all(seconds > 0 for _, seconds in results)


def test_each_file_system_gets_its_own(tmp_path: Path) -> None:
    with http_files.served() as files:
        files.contents["set.bin"] = CONTENT
        results = ranks.run(obtained, 2, files.url("set.bin"), [tmp_path / "a", tmp_path / "b"])
    assert [f"sha256:{answer}" for answer, _ in results] == [CHECKSUM] * 2
    assert len(files.requests) == 2


def test_an_error_of_one_rank_reaches_every_rank(tmp_path: Path) -> None:
    """Rank 0 finds its file; rank 1's disk has none and the server fails."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a/set.bin").write_bytes(CONTENT)
    with http_files.served() as files:
        files.broken.add("set.bin")
        results = ranks.run(obtained, 2, files.url("set.bin"), [tmp_path / "a", tmp_path / "b"])
    first, second = (answer for answer, _ in results)
    assert first == second
    assert first.startswith("rank 1: set.bin cannot be downloaded: http://")
    assert "the server answered 500" in first
