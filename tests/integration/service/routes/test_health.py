from tests.support.live import Live


def test_it_lives_and_is_ready(live_service: Live) -> None:
    assert live_service.anonymous.get("/healthz").json() == {"status": "ok"}
    assert live_service.anonymous.get("/readyz").json() == {"status": "ready"}
