from service.infra.stored_points import StoredPoints


def test_enough_points_say_that_it_is_time_to_look() -> None:
    points = StoredPoints(10)
    points.add(9)
    assert not points.look.is_set()
    points.add(1)
    assert points.look.is_set()
    points.look.clear()
    points.add(9)
    assert not points.look.is_set(), "they are counted anew"
