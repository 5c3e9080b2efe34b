"""What becomes of errors that no route handles."""

import asyncio
import logging

import pytest
from fastapi import FastAPI, Request
from starlette.types import Message

from service.api import problems


def test_who_hangs_up_during_an_upload_is_no_fault_of_the_service(caplog: pytest.LogCaptureFixture) -> None:
    app, sent = FastAPI(), list[Message]()
    problems.install(app)

    @app.put("/file")
    async def _file(request: Request) -> None:
        await request.body()

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "PUT", "path": "/file", "query_string": b"", "headers": []}
    with caplog.at_level(logging.INFO):
        asyncio.run(app(scope, receive, send))
    assert sent[0]["status"] == 400
    assert [record.levelname for record in caplog.records] == ["INFO"]
