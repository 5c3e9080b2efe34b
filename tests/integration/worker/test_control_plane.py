"""The client of the agent protocol against a real socket."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support import fake_service
from tests.support.fake_service import TOKEN, FakeService, Live
from torchyard import wire
from worker.control.client import ControlPlaneClient
from worker.exceptions import MissingBlobError, OutOfStepError, RequestRefusedError, UnavailableError


@pytest.fixture
def fake() -> FakeService:
    return FakeService()


@pytest.fixture
def live(fake: FakeService) -> Iterator[Live]:
    with fake_service.serve(fake) as running:
        yield running


@pytest.fixture
def control(live: Live) -> Iterator[ControlPlaneClient]:
    client = ControlPlaneClient(lambda: live.url, lambda: TOKEN, timeout_s=60)
    yield client
    client.close()


def test_a_launch_and_its_claim(fake: FakeService, control: ControlPlaneClient) -> None:
    attempt = fake.assign(["true"])
    assert control.claim(attempt, "one") == fake.launches[attempt]
    assert control.claim(attempt, "one") == fake.launches[attempt]
    assert control.claim(attempt, "two") is None
    assert control.claim("att-unknown", "one") is None
    assert control.launch(attempt) == fake.launches[attempt]
    assert control.launch("att-unknown") is None


def test_an_older_service_is_asked_for_the_launch(fake: FakeService, control: ControlPlaneClient) -> None:
    attempt = fake.assign(["true"])
    fake.claims_alone = True
    assert control.claim(attempt, "one") == fake.launches[attempt]
    assert control.claim(attempt, "two") is None


def test_files_are_awaited_where_the_service_says_so(fake: FakeService, control: ControlPlaneClient) -> None:
    attempt = fake.assign(["true"])
    assert not control.settled(attempt), "an older service says nothing"
    fake.awaited.add(attempt)
    assert control.settled(attempt)


def test_a_gap_is_refused_with_the_mark(fake: FakeService, control: ControlPlaneClient) -> None:
    attempt = fake.assign(["true"])
    assert control.log(attempt, 0, 0, b"\xff\n", 0) == 2
    with pytest.raises(OutOfStepError) as log:
        control.log(attempt, 0, 5, b"x", 0)
    assert log.value.offset == 2
    batch = wire.MetricBatch(node_rank=0, stream="s", rank=0, offset=9, end=10, records=[])
    with pytest.raises(OutOfStepError) as metrics:
        control.metrics(attempt, batch)
    assert metrics.value.offset == 0


def test_files_go_up_and_come_down(fake: FakeService, control: ControlPlaneClient, tmp_path: Path) -> None:
    data = bytes(3 * 2**20)
    sha256 = "0" * 64
    fake.blobs[sha256] = data
    control.fetch_blob(sha256, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == data
    with pytest.raises(MissingBlobError):
        control.fetch_blob("1" * 64, tmp_path / "other")


def test_overload_and_absence_are_the_same_to_a_caller(live: Live, control: ControlPlaneClient) -> None:
    live.fake.down = True
    with pytest.raises(UnavailableError, match="503"):
        control.settled("att-1")
    live.fake.down = False
    live.fake.delay = 2
    impatient = ControlPlaneClient(lambda: live.url, lambda: TOKEN, timeout_s=1)
    with pytest.raises(UnavailableError, match="ReadTimeout"):
        impatient.settled("att-1")
    # A large file takes the service its time to read, hash and bring to rest.
    with pytest.raises(RequestRefusedError):
        impatient.blob_placed("0" * 64, "name", 10**10)
    impatient.close()
    live.fake.delay = 0
    live.halt()
    with pytest.raises(UnavailableError, match="ConnectError"):
        control.settled("att-1")
    live.resume()
    control.settled("att-1")


def test_a_page_of_a_proxy_is_no_answer(live: Live, control: ControlPlaneClient) -> None:
    live.fake.pages = True
    with pytest.raises(UnavailableError, match=r"POST .*/settled was answered with something else than a Settled"):
        control.settled("att-1")


def test_who_does_not_answer_is_named_whoever_asks(live: Live, control: ControlPlaneClient) -> None:
    live.halt()

    def ask(_: int) -> str:
        with pytest.raises(UnavailableError) as caught:
            control.settled("att-1")
        return str(caught.value)

    with ThreadPoolExecutor(8) as threads:
        said = set(threads.map(ask, range(100)))
    assert all(message.startswith(f"the service at {live.url}/ does not answer") for message in said)


def test_a_refusal_says_why(control: ControlPlaneClient) -> None:
    with pytest.raises(RequestRefusedError, match=r"POST .*/running was refused with 404: Not Found"):
        control.running("a/b", 1)


def test_a_new_token_and_a_new_address_are_found(live: Live) -> None:
    tokens, addresses = ["old", TOKEN], ["http://127.0.0.1:1", live.url]
    control = ControlPlaneClient(lambda: addresses.pop(0), lambda: tokens.pop(0))
    with pytest.raises(UnavailableError):
        control.settled("att-1")
    with pytest.raises(RequestRefusedError):
        control.settled("att-1")
    control.settled("att-1")
    assert live.fake.settled == ["att-1"]
    control.close()
