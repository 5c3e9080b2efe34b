import pytest

from service.errors import BadPathError
from service.storage import paths


@pytest.mark.parametrize("path", ["a", "a/b.pt", ".hidden", "naïve/ü", "a b", "a\\b", "..a/b..", "a\nb"])
def test_names_inside_a_folder_are_taken(path: str) -> None:
    paths.check("files", path)


@pytest.mark.parametrize(
    "path",
    [
        "",
        ".",
        "..",
        "/",
        "/etc/passwd",
        "../x",
        "a/../b",
        "a/..",
        "./a",
        "a//b",
        "a/",
        "a/.",
        "a\0b",
        "\udc80",
        "x" * 256,
        "a/" * 600 + "a",
    ],
)
def test_names_that_could_leave_it_are_refused(path: str) -> None:
    with pytest.raises(BadPathError):
        paths.check("files", path)


def test_a_tree_has_no_name_twice_and_no_file_that_is_a_folder() -> None:
    paths.check_tree("files", ["a/b", "a/c", "ab", "d"])
    with pytest.raises(BadPathError, match="twice"):
        paths.check_tree("files", ["a", "a"])
    with pytest.raises(BadPathError, match="folder"):
        paths.check_tree("files", ["a/b/c", "a"])
