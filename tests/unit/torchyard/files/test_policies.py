from pathlib import Path

import pytest

from torchyard.exceptions import PolicyError
from torchyard.files import policies
from torchyard.spec.policy import Order, Policy


def test_what_is_written_is_read(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    for policy in (Policy(), Policy(order=Order.LAS, half_life=3600, time_slice=None, backfill=False)):
        file.write_text(policies.write(policy))
        assert policies.read(file) == policy


def test_absent_fields_have_their_defaults(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    for text in ("", "half_life: 7d\n", "{}"):
        file.write_text(text)
        assert policies.read(file) == Policy()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("halflife: 7d", "halflife: unknown field; did you mean half_life?"),
        ("half_life: never", "half_life: 'never' is not a duration"),
        ("- half_life", "a policy is a mapping of fields"),
        ("{", "is not valid YAML"),
    ],
)
def test_errors_name_file_field_and_mend(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(text)
    with pytest.raises(PolicyError) as refused:
        policies.read(file)
    assert str(file) in str(refused.value)
    assert message in str(refused.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="cannot be read: No such file"):
        policies.read(tmp_path / "gone.yaml")
