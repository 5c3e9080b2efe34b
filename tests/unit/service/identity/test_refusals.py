"""Refusals of a minute: one entry for the same, and one for all that are too many."""

from dataclasses import replace

from service.identity.refusals import MAX_ENTRIES, MAX_SUBJECTS, OTHERS, WINDOW_S, Refusal, Refusals


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def refusal(subject: str = "x") -> Refusal:
    return Refusal(user_id="u", address="127.0.0.1", action="job.cancel", subject=subject, status=403)


def test_the_same_again_is_counted_in_its_entry() -> None:
    clock = Clock()
    refusals = Refusals(clock)
    first = refusals.note(refusal())
    assert first.new is not None
    assert [refusals.note(refusal()).new for _ in range(3)] == [None] * 3
    other = refusals.note(refusal("y"))
    assert (other.new is None, other.counts) == (False, {})
    assert refusals.take_counts() == {first.new: 3}
    assert refusals.take_counts() == {}


def test_a_minute_later_it_is_an_entry_of_its_own() -> None:
    clock = Clock()
    refusals = Refusals(clock)
    first = refusals.note(refusal()).new
    refusals.note(refusal())
    clock.now += WINDOW_S
    later = refusals.note(refusal())
    assert later.new not in (None, first)
    assert later.counts == {first: 1}


def test_ever_new_ones_share_an_entry() -> None:
    refusals = Refusals(Clock())
    made = [refusals.note(replace(refusal(), user_id=str(number))) for number in range(MAX_ENTRIES + 5)]
    assert sum(each.new is not None for each in made) == MAX_ENTRIES + 1
    assert made[-1].refusal.subject == OTHERS
    assert list(refusals.take_counts().values()) == [4]


def test_a_scan_of_one_user_leaves_room_for_others() -> None:
    refusals = Refusals(Clock())
    scan = [refusals.note(refusal(str(number))) for number in range(1000)]
    assert sum(each.new is not None for each in scan) == MAX_SUBJECTS + 1
    assert scan[-1].refusal.subject == OTHERS
    assert scan[-1].refusal.user_id == "u"
    other = refusals.note(replace(refusal("1"), user_id="v"))
    assert other.refusal.subject == "1"
