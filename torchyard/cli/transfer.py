"""Progress bars of bytes that travel."""

from collections.abc import Callable

from torchyard.cli import terminal


class progress:  # noqa: N801  reads like the function it stands for
    """A bar of bytes on a terminal's stderr; ``with progress(total) as advance`` gives the function that moves it."""

    def __init__(self, total: int, what: str = "") -> None:
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

        console = terminal.console_class()(stderr=True)
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            DownloadColumn(True),
            TransferSpeedColumn(),
        )
        self._bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._bar.add_task(what, total=total)

    def __enter__(self) -> Callable[[int], None]:
        self._bar.start()
        return lambda moved: self._bar.advance(self._task, moved)

    def __exit__(self, *_: object) -> None:
        self._bar.stop()
