"""What cannot be installed says why."""

import pytest

from benchmarks.peers import __main__ as main
from benchmarks.peers import install
from benchmarks.peers.interface import NotInstalledError, Peer


def test_a_package_needs_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(NotInstalledError, match="apt-get install tool library, as root"):
        install.debian("tool", "no-such-program", ["library"])


def test_what_cannot_be_installed_is_a_row_with_the_reason() -> None:
    def refuse() -> str:
        raise NotInstalledError("not installed: no index")

    def start(_: object) -> object:
        raise AssertionError

    row = main.installed(Peer(name="absent", install=refuse, start=start))  # type: ignore[arg-type]
    assert (row.name, row.version, row.reason) == ("absent", "", "not installed: no index")
