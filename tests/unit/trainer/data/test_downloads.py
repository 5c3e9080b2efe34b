import hashlib
import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import http_files
from tests.support.http_files import Files
from trainer.data import downloads
from trainer.data.downloads import DownloadSource
from trainer.exceptions import DownloadError

CONTENT = bytes(range(256)) * 5000


@pytest.fixture
def files() -> Iterator[Files]:
    with http_files.served() as served:
        served.contents["a.bin"] = CONTENT
        yield served


def source(files: Files, *names: str, content: bytes = CONTENT) -> DownloadSource:
    urls = tuple(files.url(name) for name in names or ("a.bin",))
    return DownloadSource(urls=urls, file="sub/a.bin", checksum=f"sha256:{hashlib.sha256(content).hexdigest()}")


def names(root: Path) -> set[str]:
    return {path.name for path in (root / "sub").iterdir() if path.suffix != ".lock"}


def test_a_file_is_fetched_once(files: Files, tmp_path: Path) -> None:
    for _ in range(2):
        downloads.bring((source(files),), tmp_path)
    assert (tmp_path / "sub/a.bin").read_bytes() == CONTENT
    assert names(tmp_path) == {"a.bin"}
    assert files.requests == [("a.bin", 0)]


def test_a_cut_connection_is_gone_on_with(files: Files, tmp_path: Path) -> None:
    files.cut["a.bin"] = 700_000
    downloads.bring((source(files),), tmp_path)
    assert (tmp_path / "sub/a.bin").read_bytes() == CONTENT
    assert files.requests == [("a.bin", 0), ("a.bin", 700_000)]


class _CutEachTime(dict[str, int]):
    """A server whose every answer is cut."""

    def pop(self, name: str, _default: object = None, /) -> int:  # type: ignore[override]
        return self[name]


def test_a_download_goes_on_however_often_it_is_cut_as_long_as_each_try_brings_some(
    files: Files, tmp_path: Path
) -> None:
    files.cut = _CutEachTime({"a.bin": 200_000})
    downloads.bring((source(files),), tmp_path)
    assert (tmp_path / "sub/a.bin").read_bytes() == CONTENT
    assert [start for _, start in files.requests] == list(range(0, len(CONTENT), 200_000))


def test_tries_that_bring_nothing_are_given_up(files: Files, tmp_path: Path) -> None:
    files.cut = _CutEachTime({"a.bin": 0})
    with pytest.raises(DownloadError, match="mend the network"):
        downloads.bring((source(files),), tmp_path)
    assert files.requests == 3 * [("a.bin", 0)]


def test_what_an_earlier_process_left_is_gone_on_with_or_discarded(files: Files, tmp_path: Path) -> None:
    part = tmp_path / "sub/a.bin.part"
    part.parent.mkdir()
    part.write_bytes(CONTENT[:1000])
    downloads.bring((source(files),), tmp_path)
    assert files.requests == [("a.bin", 1000)]

    (tmp_path / "sub/a.bin").unlink()
    part.write_bytes(b"spoilt")
    downloads.bring((source(files),), tmp_path)
    assert (tmp_path / "sub/a.bin").read_bytes() == CONTENT
    assert files.requests[1:] == [("a.bin", 6), ("a.bin", 0)]


def test_wrong_content_is_refused_and_leaves_nothing(files: Files, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"a\.bin: the content does not match sha256:"):
        downloads.bring((source(files, content=b"other"),), tmp_path)
    assert names(tmp_path) == set()


def test_a_mirror_takes_over(files: Files, tmp_path: Path) -> None:
    files.broken.add("b.bin")
    downloads.bring((source(files, "b.bin", "a.bin"),), tmp_path)
    assert [name for name, _ in files.requests] == ["b.bin", "a.bin"]


def test_an_error_names_the_place_and_the_mend(files: Files, tmp_path: Path) -> None:
    files.broken.add("a.bin")
    with pytest.raises(DownloadError) as caught:
        downloads.bring((source(files),), tmp_path)
    assert f"{files.url('a.bin')}: the server answered 500: mend the network" in str(caught.value)
    assert f"put the data into {tmp_path / 'sub'} by hand and say data.download: false" in str(caught.value)


def test_a_root_that_cannot_be_written_is_named(files: Files, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DownloadError, match=r"give data\.root a folder"):
        downloads.bring((source(files),), tmp_path / "file")
    assert not files.requests


def archive() -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as tar:
        member = tarfile.TarInfo("set/data.txt")
        member.size = 5
        tar.addfile(member, io.BytesIO(b"12345"))
    return made.getvalue()


def test_an_archive_counts_only_with_its_mark(files: Files, tmp_path: Path) -> None:
    content = files.contents["a.tar.gz"] = archive()
    packed = DownloadSource(
        urls=(files.url("a.tar.gz"),),
        file="a.tar.gz",
        checksum=f"md5:{hashlib.md5(content).hexdigest()}",
        unpack=downloads.untar,
    )
    (tmp_path / "set").mkdir()  # as an interrupted unpacking leaves it
    for _ in range(2):
        downloads.bring((packed,), tmp_path)
    assert (tmp_path / "set/data.txt").read_bytes() == b"12345"
    assert not (tmp_path / "a.tar.gz").exists()
    assert files.requests == [("a.tar.gz", 0)]


def test_an_archive_that_is_none_is_an_error(files: Files, tmp_path: Path) -> None:
    packed = DownloadSource(
        urls=(files.url("a.bin"),),
        file="a.tar",
        checksum=f"sha256:{hashlib.sha256(CONTENT).hexdigest()}",
        unpack=downloads.untar,
    )
    with pytest.raises(DownloadError, match="cannot be unpacked"):
        downloads.bring((packed,), tmp_path)


def test_unusable_files_are_an_error_that_says_so(tmp_path: Path) -> None:
    def opened() -> None:
        raise RuntimeError("Dataset not found")

    with pytest.raises(DownloadError, match=r"rank 0: what lies in .* cannot be used: Dataset not found: delete it"):
        downloads.obtain((), tmp_path, opened, download=False)


def test_the_root_is_the_recipes_or_the_environments_or_the_homes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.setenv("TORCHYARD_DATA", "")
    assert downloads.root_of(None) == Path("/home/ada/.cache/torchyard/data")
    monkeypatch.setenv("TORCHYARD_DATA", "/shared/data")
    assert downloads.root_of(None) == Path("/shared/data")
    assert downloads.root_of("~/own") == Path("/home/ada/own")
