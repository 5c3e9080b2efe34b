"""The client against a running service, on both databases."""

import hashlib
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support import plane
from tests.support.live import Live
from tests.support.plane import Plane
from tests.support.wait import until
from torchyard import api, exceptions, snapshot
from torchyard.client.client import Client
from torchyard.spec import JobSpec, Launcher, Resources
from torchyard.states import JobState

PROGRAM: dict[str, Any] = {"command": ["true"], "launcher": "none", "resources": {"gpus": 0}}


def test_a_job_is_submitted_shown_held_released_and_cancelled(client: Client) -> None:
    spec = JobSpec(name="one", command=("true",), resources=Resources(gpus=0), tags=("a",))
    job = client.submit(spec)
    assert (job.name, job.tags, job.state) == ("one", ["a"], JobState.QUEUED)
    assert client.job(str(job.number)).id == job.id
    assert client.hold(job.id).held
    assert not client.release(job.id).held
    assert client.why(job.id).summary
    assert client.cancel(job.id).state is JobState.CANCELLED
    assert client.wait(job.id, timeout_s=60).state is JobState.CANCELLED
    assert [event.kind for event in client.events(job.id)][:2] == ["submitted", "held"]
    assert client.attempts(job.id) == []


def test_the_script_of_a_live_folder_decides_as_with_yard_run(client: Client, tmp_path: Path) -> None:
    (tmp_path / "spawns.py").write_text("import torch.multiprocessing as mp\nmp.spawn(print, nprocs=2)\n")
    live = JobSpec(command=("python", "spawns.py"), live=str(tmp_path), resources=Resources(gpus=2))
    job = client.submit(live)
    assert job.spec["launcher"] == "python"
    assert "because spawns.py:2 (torch.multiprocessing.spawn) starts the processes itself" in (
        client.events(job.id)[0].message
    )
    assert client.check({"command": ["spawns.py"], "live": str(tmp_path)}).spec["launcher"] == "python"
    with pytest.raises(exceptions.SpecError, match=r"there is no spwans\.py in .*; did you mean spawns\.py"):
        client.submit({"command": ["spwans.py"], "live": str(tmp_path)})
    with pytest.warns(exceptions.SpecWarning, match=r"spawns\.py:2 .* do not find each other under torchrun") as warned:
        kept = client.submit(live.model_copy(update={"launcher": Launcher.TORCHRUN}))
    assert (kept.spec["launcher"], [Path(each.filename).name for each in warned]) == ("torchrun", ["test_client.py"])
    sweep = {"command": ["spawns.py"], "live": str(tmp_path), "sweep": {"parameters": {"env.N": [1, 2]}}}
    group = client.submit_sweep(sweep)
    assert {trial.spec["launcher"] for trial in client.trials(group.id)} == {"python"}


def test_a_key_in_env_is_warned_of_wherever_the_job_runs(client: Client, tmp_path: Path) -> None:
    for where in ({}, {"live": str(tmp_path)}):
        spec = {**PROGRAM, **where, "env": {"HUB_TOKEN": "hf_abcdefghijklmnopqrstuvwxyz"}}
        with pytest.warns(
            exceptions.SpecWarning, match=r"^env\.HUB_TOKEN looks like .* `yard secrets set HUB_TOKEN`"
        ) as told:
            client.submit(spec)
        assert [Path(each.filename).name for each in told] == ["test_client.py"]


def test_a_live_folder_that_is_not_here_is_left_to_the_node(client: Client, tmp_path: Path) -> None:
    assert client.submit({"command": ["train.py"], "live": str(tmp_path / "elsewhere")}).spec["launcher"] == "torchrun"


def test_the_same_key_is_the_same_job(client: Client) -> None:
    first = client.submit(PROGRAM, idempotency_key="once")
    assert client.submit(PROGRAM, idempotency_key="once").id == first.id
    with pytest.raises(exceptions.InvalidRequestError):
        client.submit({**PROGRAM, "name": "other"}, idempotency_key="once")
    assert client.submit(PROGRAM).id != first.id


def test_lists_go_on_over_pages(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torchyard.client.calls.PAGE", 2)
    made = [client.submit({**PROGRAM, "name": f"n{n}"}).id for n in range(5)]
    assert [job.id for job in client.jobs()] == made[::-1]
    assert [job.id for job in client.jobs(limit=3)] == made[:1:-1]
    assert [job.name for job in client.jobs(q="n3")] == ["n3"]
    assert [entry.job for entry in client.queue()] == made
    client.cancel(made[0])
    assert [job.id for job in client.jobs(state=["cancelled"])] == made[:1]


def test_problems_name_the_field(client: Client) -> None:
    with pytest.raises(exceptions.InvalidRequestError, match=r"resources\.gpu: .*did you mean gpus"):
        client.submit({**PROGRAM, "resources": {"gpu": 1}})
    with pytest.raises(exceptions.NotFoundError):
        client.job("999")
    job = client.submit(PROGRAM)
    client.cancel(job.id)
    with pytest.raises(exceptions.NotAcceptableStateError):
        client.hold(job.id)


def test_a_dry_run_stores_nothing(client: Client) -> None:
    assert client.check({**PROGRAM, "resources": {"gpus": 2}}).world_size == 1
    assert list(client.jobs()) == []


def test_waiting_ends_with_the_job_or_the_time(client: Client) -> None:
    job = client.submit(PROGRAM)
    with pytest.raises(TimeoutError, match="still queued"):
        client.wait(job.id, timeout_s=0.2)
    canceller = threading.Timer(0.3, client.cancel, [job.id])
    canceller.start()
    began = time.monotonic()
    assert client.wait(job.id, timeout_s=120).state is JobState.CANCELLED
    assert time.monotonic() - began < 60
    canceller.join()


def test_a_wrong_token_and_no_service_are_explained(live_service: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    with Client(live_service.url, "ty_wrong") as stranger, pytest.raises(exceptions.UnauthorizedError):
        stranger.job("1")
    monkeypatch.setattr("torchyard.client.connection.PATIENCE_S", 0.0)
    with Client("http://127.0.0.1:9", "ty_any") as lost, pytest.raises(exceptions.UnreachableError, match="yard up"):
        lost.job("1")


def test_url_and_token_are_found(live_service: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TORCHYARD_URL", "TORCHYARD_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(exceptions.NotRunningError, match="yard up"):
        Client()
    monkeypatch.setenv("TORCHYARD_URL", live_service.url + "/")
    with Client() as found:
        assert list(found.jobs()) == []
    monkeypatch.setenv("TORCHYARD_HOME", str(live_service.home / "elsewhere"))
    with pytest.raises(exceptions.NoTokenError):
        Client()
    monkeypatch.setenv("TORCHYARD_TOKEN", live_service.admin_token)
    with Client() as found:
        assert list(found.jobs()) == []


def test_a_snapshot_is_uploaded_once(client: Client, code: Path) -> None:
    taken = snapshot.take(code)
    sent: list[int] = []
    first = client.upload_snapshot(taken, progress=sent.append)
    assert sum(sent) == taken.size
    assert sorted(taken.paths) == [".gitignore", "empty", "run.sh", "train.py"]
    assert client.upload_snapshot(taken, progress=sent.append) == first
    assert sum(sent) == taken.size
    (code / "train.py").write_text("print('other')\n")
    changed = snapshot.take(code)
    again: list[int] = []
    assert client.upload_snapshot(changed, progress=again.append) != first
    assert sum(again) == len("print('other')\n")
    job = client.submit({**PROGRAM, "code": first})
    assert job.spec["code"] == first


def test_a_file_that_changes_while_it_is_uploaded_is_refused(client: Client, code: Path) -> None:
    taken = snapshot.take(code)
    (code / "train.py").write_text("print('TRAINING')\n")
    with pytest.raises(exceptions.RefusedError):
        client.upload_snapshot(taken)


def test_logs_are_read_and_followed(client: Client, data_plane: Plane) -> None:
    seeded = data_plane.job()
    data_plane.log(seeded, 0, "grüße\n".encode())
    assert b"".join(client.logs(seeded.job)) == "grüße\n".encode()
    number = str(client.job(seeded.job).number)
    assert b"".join(client.logs(number)) == "grüße\n".encode()
    assert client.metrics(number).series == client.checkpoints(number) == client.outputs(number) == []
    assert b"".join(client.logs(seeded.job, offset=3)) == "grüße\n".encode()[3:]
    assert [stream.rank for stream in client.log_streams(seeded.job)] == [0]
    texts: list[str] = []

    def follow() -> None:
        texts.extend(chunk.text for chunk in client.follow_logs(seeded.job))

    follower = threading.Thread(target=follow)
    follower.start()
    until(lambda: texts == ["grüße\n"])
    data_plane.log(seeded, 8, b"end\n")
    until(lambda: "".join(texts) == "grüße\nend\n")
    data_plane.set_state(seeded, "succeeded", settled=True)
    follower.join(60)
    assert not follower.is_alive()
    assert "".join(texts) == "grüße\nend\n"


def test_metrics_come_with_a_cursor(client: Client, data_plane: Plane) -> None:
    seeded = data_plane.job()
    data_plane.post(seeded, "metrics", plane.batch(0, [1, 2, 3], loss=lambda step: 1.0 / step, odd="nan"))
    found = client.metrics(seeded.job, names=["loss"])
    assert [(point[0], point[2]) for point in found.series[0].points] == [(1, 1.0), (2, 0.5), (3, pytest.approx(1 / 3))]
    data_plane.post(seeded, "metrics", plane.batch(3, [4], loss=0.25, odd="inf"))
    newer = client.metrics(seeded.job, since=found.cursor)
    assert [(each.name, each.points[-1][2]) for each in newer.series if each.name == "loss"] == [("loss", 0.25)]


def test_checkpoints_are_downloaded_checked_and_resumed(client: Client, data_plane: Plane, tmp_path: Path) -> None:
    seeded = data_plane.job()
    content = bytes(range(256)) * 10_000
    data_plane.checkpoint(seeded, 10, {"state.pt": content, "sub/meta.json": b"{}"})
    (found,) = client.checkpoints(seeded.job)
    folder = tmp_path / "pulled"
    folder.mkdir()
    (folder / "state.pt.part").write_bytes(content[:1_000_000])
    moved: list[int] = []
    client.download_checkpoint(found, folder, progress=moved.append)
    assert (folder / "state.pt").read_bytes() == content
    assert (folder / "sub" / "meta.json").read_bytes() == b"{}"
    assert not list(folder.rglob("*.part"))
    assert moved[0] == 1_000_000
    assert sum(moved) == len(content) + 2


def test_a_damaged_part_is_thrown_away(client: Client, data_plane: Plane, tmp_path: Path) -> None:
    seeded = data_plane.job()
    data_plane.checkpoint(seeded, 10, {"state.pt": b"good content"})
    (found,) = client.checkpoints(seeded.job)
    (tmp_path / "state.pt.part").write_bytes(b"evil")
    with pytest.raises(exceptions.DamagedDownloadError, match="pull it again"):
        client.download_checkpoint(found, tmp_path)
    client.download_checkpoint(found, tmp_path)
    assert hashlib.sha256((tmp_path / "state.pt").read_bytes()).digest() == hashlib.sha256(b"good content").digest()


def test_people_and_tokens(client: Client, live_service: Live) -> None:
    client.create_user(api.NewUser(name="ada"))
    assert "ada" in [user.name for user in client.users()]
    made = client.create_token(api.TokenRequest(name="laptop", scopes=["read"], user="ada", expires_in="1d"))
    with Client(live_service.url, made.secret) as ada:
        assert list(ada.jobs()) == []
        with pytest.raises(exceptions.ForbiddenError):
            ada.submit(PROGRAM)
        with pytest.raises(exceptions.ForbiddenError):
            ada.create_project(api.NewProject(name="vision"))
        assert [token.name for token in ada.tokens()] == ["laptop"]
        client.revoke_token(made.id)
        with pytest.raises(exceptions.UnauthorizedError):
            ada.tokens()
    assert client.create_project(api.NewProject(name="vision")).name == "vision"
    assert [project.name for project in client.projects()] == ["default", "vision"]
    assert client.login_link().startswith(f"{live_service.url}/#login=")


def test_nodes_are_drained_and_resumed(client: Client, data_plane: Plane) -> None:
    name = client.nodes()[0].name
    seeded = data_plane.job(node=name)
    client.drain(name, "new fan")
    assert {node.name: node for node in client.nodes()}[name].state in {"draining", "unreachable"}
    assert client.job(seeded.job).state == "running"
    client.drain(name, stop_jobs=True)
    assert client.job(seeded.job).state == "stopping"
    client.resume(name)


def test_a_sweep_is_one_to_the_client_too(client: Client) -> None:
    spec = JobSpec.model_validate({**PROGRAM, "sweep": {"env.SEED": {"range": [0, 5]}}})
    with pytest.raises(exceptions.SpecError, match="submit_sweep"):
        client.submit(spec)
    group = client.submit_sweep(spec, idempotency_key="once")
    assert client.submit_sweep(spec, idempotency_key="once").id == group.id
    assert [each.id for each in client.sweeps(q=group.name)] == [group.id]
    assert [job.trial for job in client.trials(group.id, limit=3)] == [1, 2, 3]
    assert [job.trial for job in client.jobs(group=group.id)] == [5, 4, 3, 2, 1]
    assert list(client.jobs(trials="false")) == []
    with pytest.raises(TimeoutError, match=f"sweep {group.number} is not over"):
        client.wait_sweep(group.id, timeout_s=0)
    assert client.hold_sweep(group.id).held == 5
    assert client.release_sweep(group.id).held == 0
    assert client.resume_sweep(group.id).paused is None
    assert client.cancel_sweep(group.id).ended_at is not None
    assert client.wait_sweep(group.id).states == {JobState.CANCELLED: 5}
    assert client.sweep(str(group.number)).size == 5
