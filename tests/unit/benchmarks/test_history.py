from benchmarks import history


def test_the_slowest_list_stands_beside_itself() -> None:
    large = {"newest": [1.0, 2.0, 3.0], "by tag": [20.0, 40.0, 900.0]}
    small = {"newest": [1.0, 1.0, 1.0], "by tag": [4.0, 4.0, 4.0]}
    slowest, middle = history.figures(small, large, 20_000)
    assert (slowest.name, slowest.value, slowest.baseline, slowest.met) == (
        *("lists beside 20,000 ended jobs: slowest, p50", 40.0, 4.0, False),
    )
    assert (middle.value, middle.baseline) == (21.0, 2.5)
