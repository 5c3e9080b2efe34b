import asyncio
from collections.abc import AsyncIterator

import pytest
from starlette.types import Message

from service.api.open_streams import OpenStreams
from service.errors import ProblemError
from service.identity.callers import Caller

ADA, BOB = (
    Caller(user_id=name, name=name, admin=False, scopes=frozenset({"read"}), node=None, token_id=name)
    for name in ("ada", "bob")
)


async def events(error: Exception | None = None) -> AsyncIterator[bytes]:
    yield b"data"
    if error is not None:
        raise error


async def receive() -> Message:
    await asyncio.Event().wait()
    raise AssertionError


async def send(_: Message) -> None:
    pass


def refusal(streams: OpenStreams, caller: Caller) -> str:
    with pytest.raises(ProblemError) as caught:
        streams.response(caller, events())
    assert caught.value.kind == "too-many-requests"
    return str(caught.value.detail)


SCOPE = {"type": "http", "asgi": {"version": "3.0", "spec_version": "2.4"}}


def test_a_user_has_as_many_as_the_limit_and_each_counts_until_it_ends() -> None:
    streams = OpenStreams(2)
    first, failing = streams.response(ADA, events()), streams.response(ADA, events(ValueError("broken")))
    assert "ada has 2 streams open" in refusal(streams, ADA)
    assert "TORCHYARD_STREAMS_PER_USER" in refusal(streams, ADA)
    streams.response(BOB, events())
    asyncio.run(first(SCOPE, receive, send))
    streams.response(ADA, events())
    refusal(streams, ADA)
    with pytest.raises((ValueError, ExceptionGroup)):
        asyncio.run(failing(SCOPE, receive, send))
    streams.response(ADA, events())
    refusal(streams, ADA)
