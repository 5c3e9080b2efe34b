from torchyard.stack.supervise import LONGEST_PAUSE_S, pause_after


def test_pauses_grow_to_a_limit() -> None:
    assert [pause_after(n) for n in (1, 2, 3)] == [0.2, 0.4, 0.8]
    assert pause_after(50) == LONGEST_PAUSE_S
