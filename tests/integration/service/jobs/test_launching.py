"""`launcher: auto` of submissions over REST: decided from the snapshot, once, and said."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.live import Live
from tests.support.plane import sha256
from torchyard import Client

SPAWNS = b"import torch.multiprocessing as mp\nmp.spawn(print, nprocs=2)\n"


def snapshot(service: Live, **files: bytes) -> str:
    client = service.client
    entries = [
        {"path": f"{name}.py", "size": len(data), "sha256": sha256(data)} for name, data in sorted(files.items())
    ]
    made = client.post("/api/v1/snapshots", json={"files": entries}).json()
    for data in files.values():
        client.put(f"/api/v1/snapshots/{made['id']}/blobs/{sha256(data)}", content=data)
    assert client.post(f"/api/v1/snapshots/{made['id']}/commit").status_code == 200
    return str(made["id"])


def submit(service: Live, params: dict[str, str] | None = None, **spec: Any) -> tuple[dict[str, Any], str]:
    """The stored spec, and what the job's first event says."""
    answer = service.client.post("/api/v1/jobs", json={"name": "x", **spec}, params=params)
    assert answer.status_code == 201, answer.text
    job = answer.json()
    events = service.client.get(f"/api/v1/jobs/{job['id']}/events").json()
    return job["spec"], (events["items"] if isinstance(events, dict) else events)[0]["message"]


def test_the_snapshot_decides(live_service: Live) -> None:
    code = snapshot(live_service, train=b"import go\ngo.go()\n", go=SPAWNS.replace(b"mp.s", b"def go():\n    mp.s"))
    spec, said = submit(live_service, command=["python", "train.py"], code=code)
    assert spec["launcher"] == "python"
    assert "launcher python, because go.py:3 (torch.multiprocessing.spawn) starts the processes itself" in said


def test_an_explicit_torchrun_is_kept(live_service: Live) -> None:
    code = snapshot(live_service, train=SPAWNS)
    spec, said = submit(live_service, command=["python", "train.py"], code=code, launcher="torchrun")
    assert (spec["launcher"], "because" in said) == ("torchrun", False)


@pytest.mark.parametrize(
    ("spec", "launcher"),
    [
        ({"command": ["python", "train.py"], "live": "/nowhere"}, "torchrun"),
        ({"command": ["python", "train.py"], "live": "/nowhere", "resources": {"gpus": 0}}, "python"),
        ({"command": ["./run.sh"]}, "none"),
        ({"recipe": {}}, "torchrun"),
        ({"command": ["mpirun", "-np", "2", "python", "t.py"]}, "none"),
    ],
)
def test_what_is_stored_is_never_undecided(live_service: Live, spec: dict[str, Any], launcher: str) -> None:
    assert submit(live_service, **spec)[0]["launcher"] == launcher


@pytest.mark.parametrize("named", [{}, {"launcher": "torchrun"}])
def test_torchrun_by_hand(live_service: Live, named: dict[str, str]) -> None:
    spec, said = submit(live_service, command=["torchrun", "--nproc-per-node=1", "t.py"], live="/nowhere", **named)
    assert (spec["launcher"], spec["command"]) == ("torchrun", ["python", "t.py"])
    assert "`torchrun --nproc-per-node=1` is left out" in said
    refused = live_service.client.post("/api/v1/jobs", json={"command": ["torchrun", "--nproc-per-node=2", "t.py"]})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["field"] == "command"


def test_each_trial_has_a_launcher(live_service: Live) -> None:
    sweep = {"parameters": {"launcher": ["auto", "python"]}}
    body = {"command": ["python", "t.py"], "live": "/nowhere", "sweep": sweep}
    made = live_service.client.post("/api/v1/jobs", json=body)
    assert made.status_code == 201, made.text
    trials = live_service.client.get(f"/api/v1/groups/{made.json()['id']}/trials").json()["items"]
    assert sorted(trial["spec"]["launcher"] for trial in trials) == ["python", "torchrun"]


def test_a_clients_reason_is_kept(live_service: Live) -> None:
    reason = "t.py:2 starts\x1b the processes itself"
    said = submit(live_service, {"launcher_reason": reason}, command=["t.py"], launcher="python", live="/x")[1]
    assert said.endswith("; launcher python, because t.py:2 starts the processes itself")


def test_a_dry_run_says_it_too(live_service: Live) -> None:
    body = {"command": ["python", "train.py"], "code": snapshot(live_service, train=SPAWNS), "resources": {"gpus": 2}}
    found = live_service.client.post("/api/v1/jobs", json=body, params={"dry_run": "true"}).json()
    assert (found["spec"]["launcher"], found["world_size"]) == ("python", 1)
    assert "because train.py:2" in found["note"]


def test_a_reason_is_told_with_its_code(live_service: Live) -> None:
    body = {"name": "x", "command": ["python", "t.py"], "launcher": "python", "live": "/x"}
    coded = {"launcher_reason_code": "starts-itself", "launcher_reason_subject": "t.py:2\x1b"}
    query = {"launcher_reason": "t.py:2 starts", "dry_run": "true", **coded}
    params = [
        each["params"]
        for each in live_service.client.post("/api/v1/jobs", json=body, params=query).json()["notes"]
        if each["code"] == "launcher"
    ]
    assert params == [{"launcher": "python", "said": "t.py:2 starts", "why": "starts-itself", "subject": "t.py:2"}]


def test_the_client_sends_the_code_of_what_it_decided(live_service: Live, tmp_path: Path) -> None:
    (tmp_path / "t.py").write_bytes(SPAWNS)
    with Client(live_service.url, live_service.admin_token) as client:
        job = client.submit({"name": "x", "command": ["python", "t.py"], "launcher": "auto", "live": str(tmp_path)})
    data = live_service.client.get(f"/api/v1/jobs/{job.id}/events").json()["items"][0]["data"]
    (why,) = [each["params"] for each in data["notes"] if each["code"] == "launcher"]
    where = "t.py:2 (torch.multiprocessing.spawn)"
    assert why == {
        "launcher": "python",
        "said": f"{where} starts the processes itself",
        "why": "starts-itself",
        "subject": where,
    }
