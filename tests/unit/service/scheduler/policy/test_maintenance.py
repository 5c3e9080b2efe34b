"""Which nodes drain for a maintenance."""

from service.scheduler.policy.maintenance import drains
from tests.unit.service.scheduler.policy.test_reserved import reservation
from tests.unit.service.scheduler.worlds import HOUR, MINUTE, NOW


def test_a_node_drains_from_so_long_before_its_maintenance_to_the_end() -> None:
    works = reservation(NOW + HOUR, maintenance=True, nodes=frozenset("ab"))
    guests = reservation(NOW, users=frozenset({"bob"}), nodes=frozenset("c"))
    assert drains([works, guests], 5 * MINUTE, NOW + 54 * MINUTE) == {}
    for at_us in (NOW + 55 * MINUTE, NOW + HOUR, NOW + 2 * HOUR - 1):
        assert drains([works, guests], 5 * MINUTE, at_us) == {"a": "res", "b": "res"}
    assert drains([works, guests], 5 * MINUTE, NOW + 2 * HOUR) == {}


def test_of_two_at_once_the_earlier_counts() -> None:
    early = reservation(NOW, maintenance=True, nodes=frozenset("ab"), id="early")
    late = reservation(NOW + MINUTE, maintenance=True, nodes=frozenset("bc"), id="late")
    for both in ([early, late], [late, early]):
        assert drains(both, 0, NOW + MINUTE) == {"a": "early", "b": "early", "c": "late"}
