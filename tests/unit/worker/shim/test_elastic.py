import gc
import json
import os
from pathlib import Path
from typing import Any

import pytest

from worker.shim import elastic


def test_the_store_gets_a_socket_of_this_machine_alone_and_keeps_it() -> None:
    given: list[Any] = []
    listener = elastic.listening()
    address, port = listener.getsockname()
    make = elastic.with_socket(lambda *words, **options: given.append((words, options)), listener)
    descriptor = listener.fileno()
    make("127.0.0.1", port, 1, multi_tenant=True)
    assert given == [(("127.0.0.1", port, 1), {"multi_tenant": True, "master_listen_fd": descriptor})]
    assert address == "127.0.0.1"
    assert listener.fileno() == -1
    os.close(descriptor)  # it is still open, for the store


def test_a_store_that_cannot_take_a_socket_finds_the_port_free() -> None:
    listener = elastic.listening()

    def old(host: str, port: int) -> tuple[str, int]:
        assert listener.fileno() == -1
        return host, port

    assert elastic.with_socket(old, listener)("127.0.0.1", 1) == ("127.0.0.1", 1)


def test_no_error_of_the_store_is_hidden() -> None:
    def fails(**_: object) -> None:
        raise RuntimeError("no")

    with elastic.listening() as listener, pytest.raises(RuntimeError, match="no"):
        elastic.with_socket(fails, listener)()


def test_torchrun_is_told_where_and_under_which_name() -> None:
    words = elastic.rendezvous(12345)
    assert words[:-1] == [
        "--nnodes=1",
        "--node-rank=0",
        "--rdzv-backend=static",
        "--master-addr=127.0.0.1",
        "--master-port=12345",
    ]
    assert words[-1].startswith("--rdzv-id=")
    assert words[-1] != elastic.rendezvous(12345)[-1]


def test_modules_beside_it_do_not_shadow_those_of_the_job() -> None:
    own = str(Path(elastic.__file__).parent)
    path = [own, "/env/lib", f"{own}/", ""]
    elastic.leave_own_folder(path)
    assert path == ["/env/lib", ""]


def test_what_it_imports_stays_and_is_not_looked_through_again() -> None:
    frozen = gc.get_freeze_count()
    assert elastic.imported("json", "os.path") == [json, os.path]
    assert gc.get_freeze_count() > frozen
    assert gc.isenabled()
