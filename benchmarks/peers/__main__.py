"""``make bench-peers``: the same work on every queue that can be installed here, round by round, one table."""

import argparse
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from benchmarks import results
from benchmarks.peers import outcome
from benchmarks.peers.interface import NotInstalledError, Peer
from benchmarks.peers.measure import measure
from benchmarks.peers.outcome import Measured
from benchmarks.peers.queues import ALL


def chosen(only: Sequence[str]) -> list[Peer]:
    """Return the queues whose names begin with one of the words, or all."""
    return [peer for peer in ALL if not only or peer.name.lower().startswith(tuple(word.lower() for word in only))]


def installed(peer: Peer) -> Measured:
    """Install it; what cannot be is a row with the reason."""
    try:
        return Measured(name=peer.name, version=peer.install(), setting=peer.setting)
    except NotInstalledError as error:
        return Measured(name=peer.name, reason=str(error))


def one_round(peer: Peer, into: Measured) -> None:
    """Start it in an empty folder and measure; what fails is left out of the rounds that follow."""
    with tempfile.TemporaryDirectory(prefix="ty-peer-", dir="/tmp", ignore_cleanup_errors=True) as name:
        try:
            with peer.start(Path(name)) as client:
                measure(client, Path(name), into)
        except (RuntimeError, OSError) as error:
            into.reason = f"failed: {error}"


def main() -> None:
    """Measures and writes ``peers.json`` where every queue was asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", nargs="*", default=[], help="beginnings of names; nothing is written then")
    parser.add_argument("--markdown", action="store_true", help="print the table as the docs have it")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that nothing is left running then, either
    console = Console(width=180)
    peers = chosen(options.only)
    measured = {peer.name: installed(peer) for peer in peers}
    loads = []
    for number in range(options.rounds):
        for peer in peers:
            if not measured[peer.name].reason:
                loads.append(round(os.getloadavg()[0], 1))
                console.print(f"round {number + 1}: {peer.name}, load {loads[-1]:g}", style="dim")
                one_round(peer, measured[peer.name])
    rows = outcome.rows(list(measured.values()))
    console.print(outcome.markdown(rows) if options.markdown else outcome.table(rows))
    if not options.only:
        about = {"machine": results.machine(), "rounds": options.rounds, "load": [min(loads), max(loads)]}
        results.save(about | {"rows": rows}, outcome.PEERS)


if __name__ == "__main__":
    main()
