from pathlib import Path

import pytest

from service import settings
from service.settings import ServiceSettings


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
        ServiceSettings.from_environment()
    assert str(caught.value).startswith(f"{name}: ")


def test_settings_as_people_write_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHYARD_PORT", "0")
    monkeypatch.setenv("TORCHYARD_DISK_FLOOR", "1GiB")
    monkeypatch.setenv("TORCHYARD_KEEP_ENDED", "90d")
    found = ServiceSettings.from_environment()
    assert (found.port, found.disk_floor, found.keep_ended_s) == (0, 2**30, 90 * 86_400)
    monkeypatch.setenv("TORCHYARD_KEEP_ENDED", "")
    assert ServiceSettings.from_environment().keep_ended_s is None


def test_names_of_the_service_are_added_to_this_machines_own(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ServiceSettings.from_environment().allowed_hosts == ServiceSettings.allowed_hosts
    monkeypatch.setenv("TORCHYARD_ALLOWED_HOSTS", "yard.example, box,")
    assert ServiceSettings.from_environment().allowed_hosts == (*ServiceSettings.allowed_hosts, "yard.example", "box")


def test_every_bad_setting_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHYARD_PORT", "eighty")
    monkeypatch.setenv("TORCHYARD_BEHIND_PROXY", "perhaps")
    with pytest.raises(ValueError, match="TORCHYARD_PORT: 'eighty'") as caught:
        ServiceSettings.from_environment()
    assert "\nTORCHYARD_BEHIND_PROXY: 'perhaps'" in str(caught.value)


@pytest.fixture
def settings_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TORCHYARD_HOME", str(tmp_path))
    return tmp_path / "settings.yaml"


def test_a_file_gives_what_no_variable_does(settings_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings_file.write_text("service: {port: 1234, keep_ended: 90d, disk_floor: 1GiB, allowed_hosts: [a, b]}\n")
    monkeypatch.setenv("TORCHYARD_PORT", "4321")
    found = ServiceSettings.from_environment()
    assert (found.port, found.keep_ended_s, found.disk_floor) == (4321, 90 * 86_400, 2**30)
    assert found.allowed_hosts[-2:] == ("a", "b")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("service: {prot: 1}", "service.prot: there is no such setting; did you mean port?"),
        ("service: {TORCHYARD_PORT: 1}", "did you mean port?"),
        ("servce: {port: 1}", "servce: there is no such section; did you mean service?"),
        ("port: 1", "port: there is no such section: .*`service: {port: …}`"),
        ("a: 1\nb: 2", "(?s)a: there is no such section.*b: there is no such section"),
        ("service: {port: eighty}", "service.port: 'eighty'"),
        ("service: {disk_floor: 2 gibibytes}", "service.disk_floor: .*is not a size"),
        ("service: {keep_ended: 90}", "service.keep_ended: 90 is less than a day"),
        ("service: 5", "write settings below it"),
        ("- 5", "write the sections service and worker"),
        ("service: {", "is not valid YAML"),
    ],
)
def test_a_wrong_file_is_named_with_the_field(settings_file: Path, text: str, words: str) -> None:
    settings_file.write_text(text)
    with pytest.raises(ValueError, match=words) as caught:
        ServiceSettings.from_environment()
    assert str(settings_file) in str(caught.value)


def test_a_file_that_is_named_must_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHYARD_SETTINGS", str(tmp_path / "gone.yaml"))
    with pytest.raises(ValueError, match="cannot be read"):
        ServiceSettings.from_environment()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("service: {host: 0.0.0.0}", "host: 0.0.0.0 would send tokens unencrypted"),
        ("service: {heartbeat_s: 30}", "unreachable_after_s: 60 s is less than three heartbeats"),
        ("service: {secret_key_file: /nowhere/at/all.key}", "there is no folder /nowhere/at"),
        ("service: {redis_url: 'redis://:secret@box/0'}", "is open to other accounts: `chmod 0600"),
    ],
)
def test_contradictions_and_open_files_are_found(settings_file: Path, text: str, words: str) -> None:
    settings_file.write_text(text)
    settings_file.chmod(0o644)
    (found,) = ServiceSettings.from_environment().problems()
    assert words in found


def test_good_settings_have_no_problem(settings_file: Path) -> None:
    settings_file.write_text("service: {visibility: private}")
    settings_file.chmod(0o644)
    assert list(ServiceSettings.from_environment().problems()) == []


def test_what_can_count_at_once_is_taken_over_and_the_rest_is_named(settings_file: Path) -> None:
    options = {"host": "::1"}
    running = ServiceSettings.from_environment(options)
    settings_file.write_text("service: {visibility: private, host: localhost, port: 1234, keep_ended: 90d}")
    found = running.take_over(ServiceSettings.from_environment(options))
    assert (found.at_once, found.restart) == (["keep_ended", "visibility"], ["port"])
    assert (running.visibility, running.keep_ended_s) == ("private", 90 * 86_400)
    assert (running.host, running.port) == ("::1", 8765)
    assert running.take_over(ServiceSettings.from_environment(options)).restart == ["port"], "until the restart"


def test_groups_have_roles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHYARD_OIDC_ROLES", "cn=leads=administrator, ml=member")
    assert ServiceSettings.from_environment().oidc_roles == (("cn=leads", "administrator"), ("ml", "member"))
    for wrong in ("ml", "=member", "ml=boss"):
        monkeypatch.setenv("TORCHYARD_OIDC_ROLES", wrong)
        with pytest.raises(ValueError, match="TORCHYARD_OIDC_ROLES"):
            ServiceSettings.from_environment()


def test_a_setting_that_cannot_be_read_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHYARD_PORT", "many")
    (found,) = settings.problems()
    assert found.startswith("TORCHYARD_PORT: 'many'")
