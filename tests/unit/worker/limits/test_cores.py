from worker.limits import cores


def test_lists_of_the_kernel() -> None:
    assert cores.parse("0-2,8\n") == {0, 1, 2, 8}
    assert cores.parse("\n") == frozenset()
    assert cores.parse(cores.write({9, 1, 2})) == {1, 2, 9}


def test_a_job_gets_cores_that_nobody_has() -> None:
    assert cores.choose(2, range(4), []) == {0, 1}
    assert cores.choose(2, range(4), [{0, 1}]) == {2, 3}
    assert cores.choose(1, {4, 5}, [{0, 1}, {4}]) == {5}


def test_where_all_are_taken_it_gets_those_that_the_fewest_have() -> None:
    assert cores.choose(2, range(3), [{0, 1}, {0, 2}]) == {1, 2}


def test_it_gets_no_more_than_there_are() -> None:
    assert cores.choose(8, range(2), []) == {0, 1}


def test_of_free_cores_those_near_the_gpus_come_first_then_those_of_one_node() -> None:
    nodes = {0: 0, 1: 1, 2: 0, 3: 1}
    assert cores.choose(2, range(4), [], nodes, near={1}) == {1, 3}
    assert cores.choose(2, range(4), [{1}], nodes, near={1}) == {0, 3}
    assert cores.choose(2, range(4), [], nodes) == {0, 2}
    assert cores.choose(3, range(4), [{0}], nodes) == {1, 2, 3}
