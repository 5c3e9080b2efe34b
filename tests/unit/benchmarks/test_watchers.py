from collections import defaultdict

from benchmarks import watchers
from benchmarks.watchers import Watched


def test_each_kind_stands_beside_the_empty_route() -> None:
    times = {kind: [float(number) for number in range(100)] for kind in watchers.TARGETS}
    empty = Watched(defaultdict(list, {"empty route": [1.0, 2.0, 3.0]}))
    found = {figure.name: figure for figure in watchers.figures(Watched(defaultdict(list, times)), empty)}
    assert len(found) == 2 * len(watchers.TARGETS)
    assert (found["lists, p50"].met, found["lists, p99"].met) == (True, True)
    assert found["submissions, p50"].baseline == 2.0
    assert (found["submissions, p99"].target, found["submissions, p99"].met) == ("", True)
