import pytest

from service.settings import Settings


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("TORCHYARD_PORT", "eighty", "eighty"),
        ("TORCHYARD_HEARTBEAT_S", "often", "often"),
        ("TORCHYARD_DISK_FLOOR", "2 gibibytes", "is not a size"),
        ("TORCHYARD_KEEP_ENDED", "three months", "is not a duration"),
        ("TORCHYARD_KEEP_ENDED", "90", "less than a day"),
    ],
)
def test_a_bad_setting_is_named(monkeypatch: pytest.MonkeyPatch, name: str, text: str, words: str) -> None:
    monkeypatch.setenv(name, text)
    with pytest.raises(ValueError, match=words) as caught:
        Settings.from_environment()
    assert str(caught.value).startswith(f"{name}: ")


def test_settings_as_people_write_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHYARD_PORT", "0")
    monkeypatch.setenv("TORCHYARD_DISK_FLOOR", "1GiB")
    monkeypatch.setenv("TORCHYARD_KEEP_ENDED", "90d")
    found = Settings.from_environment()
    assert (found.port, found.disk_floor, found.keep_ended_s) == (0, 2**30, 90 * 86_400)
    monkeypatch.setenv("TORCHYARD_KEEP_ENDED", "")
    assert Settings.from_environment().keep_ended_s is None


def test_names_of_the_service_are_added_to_this_machines_own(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings.from_environment().allowed_hosts == Settings.allowed_hosts
    monkeypatch.setenv("TORCHYARD_ALLOWED_HOSTS", "yard.example, box,")
    assert Settings.from_environment().allowed_hosts == (*Settings.allowed_hosts, "yard.example", "box")


def test_every_bad_setting_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHYARD_PORT", "eighty")
    monkeypatch.setenv("TORCHYARD_BEHIND_PROXY", "perhaps")
    with pytest.raises(ValueError, match="TORCHYARD_PORT: 'eighty'") as caught:
        Settings.from_environment()
    assert "\nTORCHYARD_BEHIND_PROXY: 'perhaps'" in str(caught.value)
