"""The compose file and the Dockerfile: checked, since no engine runs in the tests."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
COMPOSE = ROOT / "docker-compose.yml"


def _run(*command: str | Path) -> None:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return dict(yaml.safe_load(COMPOSE.read_text()))


def test_the_compose_file_keeps_its_schema() -> None:
    _run(Path(sys.executable).with_name("check-jsonschema"), "--builtin-schema", "vendor.compose-spec", COMPOSE)


def test_the_dockerfile_passes_its_linter() -> None:
    _run(Path(sys.executable).with_name("hadolint"), "--failure-threshold", "info", ROOT / "Dockerfile")


def test_every_service_has_a_health_check(compose: dict[str, Any]) -> None:
    assert all("healthcheck" in service for service in compose["services"].values())


def test_every_build_target_is_a_stage_of_the_dockerfile(compose: dict[str, Any]) -> None:
    stages = {line.split()[3] for line in (ROOT / "Dockerfile").read_text().splitlines() if line.startswith("FROM")}
    targets = {service["build"]["target"] for service in compose["services"].values() if "build" in service}
    assert targets <= stages


def test_nothing_is_published_beyond_loopback(compose: dict[str, Any]) -> None:
    ports = [port for service in compose["services"].values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_a_worker_on_the_host_is_told_where_redis_is_published(compose: dict[str, Any]) -> None:
    """The service tells nodes the name that Redis has among the containers."""
    (port,) = compose["services"]["redis"]["ports"]
    line = f"TORCHYARD_REDIS_URL=redis://{port.rpartition(':')[0]}/0"
    assert all(line in (ROOT / name).read_text() for name in ("docker-compose.yml", "README.md"))


def test_no_other_account_enters_the_services_home(compose: dict[str, Any]) -> None:
    """A new volume gets its mode from the folder in the image."""
    (_, folder) = compose["services"]["service"]["volumes"][0].split(":")
    assert (
        f"install --directory --mode 0700 --owner torchyard --group torchyard {folder}\n"
        in (ROOT / "Dockerfile").read_text()
    )


def test_every_password_comes_from_the_environment_and_is_asked_for(compose: dict[str, Any]) -> None:
    asked = (ROOT / "deploy" / "compose.env.example").read_text()
    for name in ("POSTGRES_PASSWORD", "REDIS_PASSWORD"):
        assert f"${{{name}:?" in COMPOSE.read_text()
        assert f"{name}=\n" in asked
    assert compose["services"]["worker"]["profiles"] == ["trial"]


def test_only_the_service_and_redis_itself_know_the_password_of_redis(compose: dict[str, Any]) -> None:
    knows = {name for name, service in compose["services"].items() if "REDIS_PASSWORD" in str(service)}
    assert knows == {"redis", "service"}


def test_the_trial_worker_is_the_node_whose_token_it_reads(compose: dict[str, Any]) -> None:
    worker = compose["services"]["worker"]
    words = worker["command"]
    name = words[words.index("--name") + 1]
    assert f"yard token create {name} --scope node --node {name} > node.token" in COMPOSE.read_text()
    (secret,) = worker["secrets"]
    assert words[words.index("--token-file") + 1] == f"/run/secrets/{secret}"
    assert compose["secrets"] == {secret: {"file": "./node.token"}}


def test_jobs_of_the_trial_worker_reach_no_file_of_the_service(compose: dict[str, Any]) -> None:
    """They run as its own account: the administrator's token lies in the service's volume."""
    services = compose["services"].items()
    mounted = {name: {each.split(":")[0] for each in service.get("volumes", [])} for name, service in services}
    assert mounted["service"] == {"torchyard"}
    assert mounted["worker"] == {"work"}
