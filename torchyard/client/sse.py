"""Server-sent events, as far as the service sends them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ServerEvent:
    """One event; `id` is what a reconnect sends as ``Last-Event-ID``."""

    event: str = "message"
    data: str = ""
    id: str | None = None


def parse(lines: Iterable[str]) -> Iterator[ServerEvent]:
    """Events in a stream of lines; comments keep the connection alive and are skipped, as is a cut-off last event."""
    fields: dict[str, list[str]] = {}
    for line in lines:
        if not line:
            if fields:
                yield _event(fields)
            fields = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(":")
            fields.setdefault(name, []).append(value.removeprefix(" "))


def _event(fields: dict[str, list[str]]) -> ServerEvent:
    return ServerEvent(
        event=fields.get("event", ["message"])[-1],
        data="\n".join(fields.get("data", [])),
        id=fields["id"][-1] if "id" in fields else None,
    )
