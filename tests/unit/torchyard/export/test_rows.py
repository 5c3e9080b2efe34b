import io

from torchyard.export import rows
from torchyard.export.rows import ExportedPoint


def test_numbers_are_written_so_that_they_are_read_back() -> None:
    file = io.StringIO()
    points = [ExportedPoint('a "b", c', 0, 3, 1700000000.123456, 0.1), ExportedPoint("loss", 1, -1, 0.0, float("nan"))]
    rows.write_csv(points, file)
    assert file.getvalue().splitlines() == [
        "name,rank,step,time,value",
        '"a ""b"", c",0,3,1700000000.123456,0.1',
        "loss,1,-1,0.0,nan",
    ]


def test_names_are_asked_for_a_few_at_a_time_and_those_with_commas_alone() -> None:
    names = ["a" * 400, "b" * 400, "c" * 400, "x,y", "d", "e", "p,q"]
    assert list(rows._asked(names)) == [names[:2], names[2:3], ["x,y"], ["d", "e"], ["p,q"]]
    assert list(rows._asked([])) == []
