import pytest

from torchyard.files import links


@pytest.mark.parametrize(
    ("path", "text", "inside"),
    [
        ("latest", "step_5.pt", True),
        ("a/b/latest", "../../step_5.pt", True),
        ("latest", "../step_5.pt", False),
        ("a/latest", "../../x", False),
        ("latest", "/etc/passwd", False),
        ("latest", ".", False),
        ("a/latest", "..", False),
        ("a/b/latest", "c/../../../x", False),
    ],
)
def test_a_link_stays_inside_of_its_folder(path: str, text: str, inside: bool) -> None:
    assert links.stays_inside(path, text) is inside
