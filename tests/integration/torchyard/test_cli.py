"""Commands against a running service whose node is played by the test."""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert, update

from service.artifacts.housekeeping import DAY_US
from service.db.models import Checkpoint, Device, Job, LogStream, LogTime, Node, Snapshot
from tests.support import box, disks, plane, scripted
from tests.support.live import Live
from tests.support.plane import Plane
from torchyard import home, snapshot
from torchyard.api import NewUser
from torchyard.cli import main, submit
from torchyard.client.client import Client
from torchyard.client.connection import Connection
from torchyard.exceptions import NeverFitsError, RefusedError


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def yard(
    live_service: Live, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Done]:
    """Runs a command line in this process."""
    monkeypatch.setenv("TORCHYARD_URL", live_service.url)

    def run(*words: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["yard", *words])
        with pytest.raises(SystemExit) as ended:
            main.run()
        shown = capsys.readouterr()
        return Done(int(ended.value.code or 0), shown.out, shown.err)

    return run


def test_a_spec_is_checked_submitted_and_shown(yard: Callable[..., Done], code: Path) -> None:
    file = code / "job.yaml"
    file.write_text("name: one\ncommand: [train.py]\nlauncher: python\ncode: .\nresources: {gpus: 0}\ntags: [a]\n")
    told = yard("submit", "--dry-run", str(file)).err
    assert "the spec is fine" in told
    assert "submitted now, it is at place " in told
    assert yard("ls").err.startswith("no jobs")
    submitted = yard("submit", str(file), "--set", "priority=high")
    assert (submitted.code, submitted.out) == (0, "1\n")
    (listed,) = yard("ls", "--json").json
    assert (listed["name"], listed["priority"], listed["tags"]) == ("one", "high", ["a"])
    assert listed["spec"]["code"].startswith("snap-")
    assert listed["spec"]["link_root"] == str(code)
    shown = yard("show", "1")
    assert "train.py" in shown.out
    assert "submitted" in shown.out
    assert yard("why", "1").out
    assert yard("ls", "--state", "failed").err.startswith("no jobs")
    assert "rank 3 has written nothing so far" in yard("logs", "1", "-r", "3").err


def test_an_invitation_to_an_address_of_this_machine_alone_says_so(yard: Callable[..., Done]) -> None:
    invited = yard("nodes", "--invite", "box2")
    assert invited.out.startswith("yard worker --join http://127.0.0.1:")
    assert "other machines reach nothing at http://127.0.0.1:" in invited.err


def test_a_project_that_is_new_is_told_once(yard: Callable[..., Done], code: Path) -> None:
    """A mistyped name would else be found out much later."""
    words = ("run", "-d", "--gpus", "0", "--project", "vison", "--code", str(code), "--", "python", "train.py")
    assert "project vison is new" in yard(*words).err
    assert "is new" not in yard(*words).err


def test_a_command_is_told_how_it_goes_on(yard: Callable[..., Done], code: Path) -> None:
    words = ("--gpus", "0", "--code", str(code), "--", "python", "train.py")
    assert yard("run", "-d", "--resume-args", "--resume {checkpoint} --note 'a b'", *words).code == 0
    assert yard("show", "1", "--json").json["spec"]["resume"] == {"args": ["--resume", "{checkpoint}", "--note", "a b"]}
    refused = yard("run", "-d", "--resume-args", "--from {newest}", *words)
    assert (refused.code, "write {checkpoint}, the only one there is" in refused.err.replace("\n", " ")) == (125, True)
    refused = yard("run", "-d", "--resume-args", "--note 'a", *words)
    assert (refused.code, "No closing quotation" in refused.err) == (2, True)


def test_an_argument_that_is_no_text_is_told_of(yard: Callable[..., Done], code: Path) -> None:
    words = ("--gpus", "0", "--code", str(code), "--", "python", "train.py", "caf\udce9")
    refused = yard("run", "--dry-run", *words)
    assert (refused.code, "an argument is not UTF-8 text" in refused.err) == (125, True)


def test_a_python_that_is_not_on_the_box_is_warned_of(yard: Callable[..., Done], code: Path) -> None:
    words = ("--dry-run", "--gpus", "0", "--launcher", "python", "--code", str(code), "--", "python", "train.py")
    assert "python: there is no /nope on this machine" in yard("run", "--python", "/nope", *words).err
    assert "there is no" not in yard("run", "--python", sys.executable, *words).err


def test_what_is_piped_into_a_job_is_warned_of(
    yard: Callable[..., Done], code: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, writer = os.pipe()
    monkeypatch.setattr(submit, "STDIN", reader)
    words = ("run", "--dry-run", "--gpus", "0", "--code", str(code), "--", "python", "train.py")
    assert "no standard input" not in yard(*words).err
    os.write(writer, b"1 2 3\n")
    assert "a job has no standard input" in yard(*words).err
    os.close(reader)
    os.close(writer)


def test_all_gpus_are_as_many_as_the_box_has(yard: Callable[..., Done], live_service: Live, code: Path) -> None:
    file = code / "job.yaml"
    file.write_text("command: [train.py]\nlauncher: torchrun\ncode: .\nresources: {gpus: all}\n")
    refused = yard("submit", str(file))
    assert refused.code == 1
    assert "resources.gpus: no node with usable devices is online" in refused.err
    box.add_node(live_service.context.db, devices=3)
    checked = yard("submit", "--dry-run", str(file))
    assert "gpus: all is 3 here" in checked.err
    assert "3 processes" in checked.err
    assert yard("submit", str(file)).out == "1\n"
    words = ("--gpus", "all", "--no-warm-start", "--code", str(code), "--", "python", "train.py", "--note", "a b")
    told = yard("run", "--dry-run", *words).err
    assert "the spec is fine: 1 process." in told
    assert "submitted now, it is at place " in told
    assert yard("run", "-d", *words).out == "2\n"
    assert "train.py --note 'a b'" in yard("show", "2").out
    specs = [each["spec"] for each in yard("ls", "--json").json]
    assert [(each["resources"]["gpus"], each.get("warm_start", True)) for each in specs] == [(3, False), (3, True)]
    wrong = yard("run", "-d", "--gpus", "some", "--", "true")
    assert (wrong.code, "give a number, or all for as many as a node has" in wrong.err.replace("\n", " ")) == (2, True)


def test_a_bad_spec_is_one_error_with_its_place(yard: Callable[..., Done], tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("name: one\ncommand: [true]\ngpus: 2\n")
    done = yard("submit", str(file))
    assert done.code == 1
    assert done.err == f"yard: {file}:3:1: gpus: unknown field: leave it out\n"
    assert (
        yard("submit", str(tmp_path / "gone.yaml")).err
        == f"yard: {tmp_path / 'gone.yaml'} cannot be read: No such file or directory\n"
    )


def test_waiting_jobs_are_held_released_and_cancelled(yard: Callable[..., Done], client: Client) -> None:
    client.submit({"command": ["true"], "launcher": "none", "resources": {"gpus": 0}})
    assert yard("hold", "1").out == "job 1 queued, held\n"
    assert "held" in yard("ls").out
    assert yard("release", "1").out == "job 1 queued\n"
    assert yard("cancel", "1").out == "job 1 cancelled\n"
    assert yard("wait", "1").code == 130
    assert yard("rerun", "1", "--set", "name=again").out == "2\n"
    assert client.job("2").name == "again"
    waited = yard("wait", "2", "--timeout", "1s")
    assert (waited.code, waited.err) == (125, "yard: job 2 is still queued after 1.0 s\n")
    refused = yard("cancel", "99")
    assert (refused.code, refused.err) == (1, "yard: There is no job '99'.\n")
    both = yard("cancel", "99", "2")
    assert (both.code, both.out, both.err) == (1, "job 2 cancelled\n", "yard: There is no job '99'.\n")


def test_what_a_job_wrote_is_shown_and_pulled(yard: Callable[..., Done], data_plane: Plane, tmp_path: Path) -> None:
    seeded = data_plane.job()
    number = str(yard("show", "--json", seeded.job).json["number"])
    data_plane.log(seeded, 0, b"a line\xff\n")
    data_plane.post(seeded, "metrics", plane.batch(0, list(range(100)), loss=lambda step: 1.0 / (step + 1)))
    data_plane.checkpoint(seeded, 10, {"state.pt": b"state"}, loss=0.5)
    assert "launcher" not in yard("logs", number, "--list").out
    table = yard("metrics", number)
    assert "loss" in table.out
    assert "█" in table.out
    assert yard("metrics", number, "--json").json["series"][0]["points"][0][0] == 0
    assert "lost" not in table.err + yard("show", number).out
    lossy = plane.batch(100, [100], loss=1.0).model_copy(update={"taken": 1334})
    data_plane.post(seeded, "metrics", lossy).raise_for_status()
    assert "1,233 records were lost" in yard("metrics", number).err
    assert "1,233 metric records" in yard("show", number).out
    assert "loss 0.5" in yard("checkpoints", number).out
    pulled = yard("pull", number, str(tmp_path / "here"))
    assert pulled.out == f"{tmp_path / 'here' / 'step-10' / 'state.pt'}\n"
    assert (tmp_path / "here" / "step-10" / "state.pt").read_bytes() == b"state"
    assert "no stored checkpoint" in yard("pull", number, "-c", "11").err
    by_hand = yard("pull", number, "--to", str(tmp_path / "hand")).err
    assert by_hand.startswith("nothing to pull: the job has left no files here; a checkpoint comes with ")
    with disks.small(tmp_path / "small", 1) as small:
        disks.fill(small / "full")
        table = small / "points.csv"
        half = yard("metrics", number, "--export", "csv", "--to", str(table))
        assert (half.code, half.err) == (1, f"yard: {table}: No space left on device\n")
        assert not table.exists()


def test_a_log_is_read_from_its_end_and_its_bars_are_folded(
    yard: Callable[..., Done], data_plane: Plane, client: Client
) -> None:
    seeded = data_plane.job()
    job = seeded.job
    many = b"".join(b"line %d %s\n" % (n, b"x" * 1000) for n in range(300))
    bars = b" 10%\r 50%\r\x1b[32m100%\x1b[0m\n"
    data_plane.log(seeded, 0, many + bars + b"the end")
    data_plane.log(seeded, 0, b"other\n", rank=1)
    assert yard("logs", job, "--tail", "2").out == "\x1b[32m100%\x1b[0m\nthe end"
    assert yard("logs", job, "--tail", "0").out == ""
    assert yard("logs", job, "--tail", "200").out.splitlines()[0].startswith("line 102 ")
    assert len(yard("logs", job, "--tail", "1000").out.split("\n")) == 302
    assert [line.split()[1] for line in yard("logs", job, "--grep", "^line 2.9 ").out.splitlines()] == [
        f"2{n}9" for n in range(10)
    ]
    assert yard("logs", job, "--grep", "^line", "--tail", "1").out.startswith("line 299 ")
    assert "not a regular expression" in yard("logs", job, "--grep", "(").err
    assert yard("logs", job, "--raw", "-n", "2").out.encode()[:24] == bars[:24]
    both = yard("logs", job, "-r", "0", "-r", "1", "-n", "1").out
    assert both == "[0] the end\n[1] other\n"
    data_plane.set_state(seeded, "succeeded", settled=True)
    assert yard("logs", "-f", job, "-n", "2").out == "\x1b[32m100%\x1b[0m\nthe end\n"
    assert yard("logs", "-f", job, "--grep", "^line 299").out.startswith("line 299 ")
    assert sorted(yard("logs", "-f", job, "-n", "1", "-r", "0", "-r", "1").out.splitlines()) == [
        "[0] the end",
        "[1] other",
    ]
    assert client.log_tail(job, 1) == (b"the end", len(many + bars) + 7)


def test_a_log_is_read_from_a_moment_on(yard: Callable[..., Done], data_plane: Plane) -> None:
    seeded = data_plane.job()
    job = seeded.job
    data_plane.log(seeded, 0, b"".join(b"old %d\n" % n for n in range(4)))
    with data_plane.ctx.db.write() as tx:
        tx.execute(update(LogTime).values(time_us=LogTime.time_us - 3_600_000_000))
        tx.execute(update(LogStream).values(timed_us=LogStream.timed_us - 3_600_000_000))
    data_plane.log(seeded, 24, b"new 1\nnew 2\nnew 3\n")
    data_plane.log(seeded, 0, b"other\n", rank=1)
    new = "new 1\nnew 2\nnew 3\n"
    assert yard("logs", job, "--since", "10m").out == new
    assert yard("logs", job, "--since", "2h").out == "old 0\nold 1\nold 2\nold 3\n" + new
    assert yard("logs", job, "--since", "2100-01-01T00:00Z").out == ""
    a_while_ago = datetime.now().astimezone() - timedelta(minutes=30)
    for written in (a_while_ago.isoformat(), a_while_ago.strftime("%H:%M")):
        assert yard("logs", job, "--since", written).out == new
    assert yard("logs", job, "--since", "10m", "-n", "2").out == "new 2\nnew 3\n"
    assert yard("logs", job, "--since", "10m", "-n", "9").out == new
    assert yard("logs", job, "--since", "10m", "-n", "1", "--grep", "[12]").out == "new 2\n"
    assert yard("logs", job, "--since", "10m", "--json").json["text"] == new
    both = yard("logs", job, "--since", "10m", "-r", "0", "-r", "1").out
    assert both == "[0] new 1\n[0] new 2\n[0] new 3\n[1] other\n"
    both = yard("logs", job, "--since", "10m", "-r", "0", "-r", "1", "-n", "1", "--json").json
    assert [each["text"] for each in both] == ["new 3\n", "other\n"]
    assert yard("logs", job, "--since", "10m", "--grep", "[12]", "--json").json["text"] == "new 1\nnew 2\n"
    assert yard("logs", "-f", job, "-n", "1", "--json").code == 2
    data_plane.set_state(seeded, "succeeded", settled=True)
    assert yard("logs", "-f", job, "--since", "10m").out == new
    assert yard("logs", "-f", job, "--since", "10m", "-n", "9").out == new
    assert yard("logs", "-f", job, "--since", "10m", "--json").json["text"] == new
    refused = yard("logs", job, "--since", "lunch")
    assert (refused.code, refused.err) == (
        1,
        "yard: --since: 'lunch' is no time: write 10m, 14:05, 2026-11-23T09:00 or …T09:00+01:00\n",
    )


def test_files_of_ended_jobs_are_discarded(yard: Callable[..., Done], data_plane: Plane) -> None:
    old, kept, other = data_plane.job(name="old"), data_plane.job(), data_plane.job()
    for seeded in (old, kept, other):
        data_plane.log(seeded, 0, b"x" * 2048)
        data_plane.set_state(seeded, "failed", settled=True)
    long_ago = data_plane.ctx.now_us() - 100 * DAY_US
    with data_plane.ctx.db.write() as tx:
        tx.execute(update(Job).where(Job.id != other.job).values(ended_us=long_ago))
        tx.execute(update(Job).where(Job.id == kept.job).values(tags=["keep"]))
        tx.execute(update(Job).where(Job.id == other.job).values(ended_us=data_plane.ctx.now_us()))
    number, last = (yard("show", "--json", seeded.job).json["number"] for seeded in (old, other))
    assert (
        yard("discard").err == "yard: which jobs? Name them, or say how old they are: `yard discard --older-than 90d`\n"
    )
    assert "these jobs" in yard("discard", str(number), "--user", "ada").err
    assert yard("discard", "--older-than", "long").err.startswith("yard: --older-than: 'long' is not a duration")
    assert yard("discard", "--older-than", "101d").err == "no such jobs\n"
    assert yard("discard", "--older-than", "90d", "--user", "ada", "--yes").err == "no such jobs\n"
    asked = yard("discard", "--older-than", "90d")
    assert (asked.code, asked.err) == (1, "yard: nothing was discarded: with --yes, these 2.0 KiB are gone for good\n")
    assert [line.split()[0] for line in asked.out.splitlines()] == ["JOB", str(number)]
    assert yard("logs", str(number)).out == "x" * 2048
    done = yard("discard", "--older-than", "90d", "--everybody", "--yes")
    assert (done.code, done.out) == (0, f"job {number} failed, files discarded\n")
    assert "discarded on" in yard("show", str(number)).out
    assert yard("logs", str(number)).out == ""
    assert "it goes with --yes" in yard("discard", str(last), "--json").err
    assert yard("discard", str(last), "--yes", "--json").json[0]["discarded_at"]
    assert yard("discard", "--older-than", "9999d", "--yes", "--json").json == []


def test_code_that_no_job_needs_is_discarded(
    yard: Callable[..., Done], data_plane: Plane, client: Client, tmp_path: Path
) -> None:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "train.py").write_text("print(1)")
    client.upload_snapshot(snapshot.take(folder))
    ended = data_plane.job(name="ended")
    data_plane.set_state(ended, "failed", settled=True)
    with data_plane.ctx.db.write() as tx:
        tx.execute(update(Snapshot).values(created_us=1))
    done = yard("discard", ended.job, "--yes")
    assert (done.code, done.err) == (0, "1 unused snapshot of code removed (8 B)\n")
    used = client.upload_snapshot(snapshot.take(folder))
    with data_plane.ctx.db.write() as tx:
        tx.execute(update(Snapshot).values(created_us=1))
        tx.execute(update(Job).values(spec={"command": ["train.py"], "code": used}, code=used))
    assert "(code 8 B)" in yard("quota", "ls").out
    assert "--code goes alone" in yard("discard", ended.job, "--code").err
    assert yard("discard", "--code").err.startswith("yard: nothing was discarded: with --yes")
    assert yard("discard", "--code", "--yes").err == "1 unused snapshot of code removed (8 B)\n"
    assert yard("discard", "--code", "--yes").err == "no such code\n"
    assert "(code" not in yard("quota", "ls").out


def test_who_may_use_the_box(yard: Callable[..., Done]) -> None:
    _, _, command = yard("users", "add", "ada").err.partition("yard ")
    assert yard(*command.split()).code == 0, "what is advised works as it stands"
    assert yard("users", "set", "ada", "--admin", "--unix-user", "ada").err == "ada: active, admin\n"
    assert yard("users", "set", "ada", "--no-admin", "--unix-user", "none", "--json").json["unix_user"] is None
    assert "deactivated" in yard("users", "remove", "ada").err
    assert "deactivated" in yard("users").out
    assert yard("users", "set", "ada", "--active").err.startswith("ada: active\ntokens from before a removal")
    (admin,) = [user["name"] for user in yard("users", "--json").json if user["admin"]]
    assert "is the only administrator" in yard("users", "remove", admin).err
    assert yard("users", "set", "ada", "--unix-user", "A B").err.startswith("yard: unix_user: ")


def test_roles_and_service_accounts(yard: Callable[..., Done], live_service: Live) -> None:
    yard("projects", "create", "vision")
    added = yard("users", "add", "vera", "--role", "viewer").err
    assert added == "added vera; make a token with: yard token create laptop --user vera --scope read\n"
    assert "ci --user robot" in yard("users", "add", "robot", "--service-account", "vision").err
    shown = [line.split() for line in yard("users").out.splitlines()]
    assert ["robot", "service", "account", "of", "vision"] in [line[:5] for line in shown]
    assert ["vera", "viewer"] in [line[:2] for line in shown]
    assert yard("projects", "members", "add", "vision", "vera", "--role", "administrator").code == 0
    assert "robot vera (administrator)" in yard("projects").out
    assert yard("users", "set", "vera", "--role", "member").err == "vera: active\n"
    assert yard("users", "set", "robot", "--role", "member").code == 1
    assert yard("users", "add", "x", "--role", "boss").err.startswith("yard: role: ")
    secret = yard("token", "create", "ci", "--user", "robot").out.strip()
    (old,) = [each["id"] for each in yard("token", "ls", "--all", "--json").json if each["name"] == "ci"]
    rotated = yard("token", "rotate", old, "--grace", "1h")
    assert rotated.err.startswith(f"{old} counts for another 1h; the new one is tok-")
    for each in (secret, rotated.out.strip()):
        with Client(live_service.url, each) as robot:
            assert robot.settings().user.name == "robot"


def test_the_audit_is_shown(yard: Callable[..., Done], live_service: Live) -> None:
    yard("users", "add", "ada")
    secret = yard("token", "create", "laptop", "--user", "ada", "--scope", "read").out.strip()
    with Client(live_service.url, secret) as reader, pytest.raises(RefusedError):
        reader.create_user(NewUser(name="eve"))
    lines = yard("audit", "--since", "10m").out.splitlines()
    assert lines[1].split()[2:] == ["ada", "127.0.0.1", "user.create", "refused", "(403)"]
    assert [each["action"] for each in yard("audit", "--done", "--limit", "2", "--json").json] == [
        "token.create",
        "user.create",
    ]
    table = yard("audit", "--user", "ada", "--refused", "--csv").out.splitlines()
    assert table[1].split(",")[1:3] == ["ada", "127.0.0.1"]
    assert yard("audit", "--until", "10m").out.splitlines()[1:] == []
    assert yard("audit", "--since", "someday").code == 1


def test_who_has_no_unix_account_is_told_when_added_and_at_submission(
    yard: Callable[..., Done], live_service: Live
) -> None:
    with scripted.agent(live_service) as agent:
        agent.register(capabilities=["unix-accounts"])
        added = yard("users", "add", "alice")
        assert added.err.startswith("warning: alice has no UNIX account, so node ")
        assert "no UNIX account" in yard("users").out
        secret = yard("token", "create", "laptop", "--user", "alice").out.strip()
        with Client(live_service.url, secret) as hers:
            with pytest.raises(NeverFitsError, match="yard users set alice --unix-user ACCOUNT"):
                hers.submit({"command": ["true"], "launcher": "none"})
            assert "warning" not in yard("users", "set", "alice", "--unix-user", "alice").err
            assert hers.submit({"command": ["true"], "launcher": "none"}).number


def test_projects_are_listed_and_created(yard: Callable[..., Done]) -> None:
    assert yard("projects", "create", "vision").err.startswith("created vision;")
    assert yard("projects", "create", "nlp", "--json").json["name"] == "nlp"
    assert [each["name"] for each in yard("projects", "--json").json] == ["default", "nlp", "vision"]
    assert [line.split()[0] for line in yard("projects").out.splitlines()] == ["NAME", "default", "nlp", "vision"]
    again, wrong = yard("projects", "create", "vision"), yard("projects", "create", "a b")
    assert (again.code, again.err) == (1, "yard: name: there is a project vision already.\n")
    assert (wrong.code, wrong.err.split(": ")[:2]) == (1, ["yard", "name"])
    assert yard("users", "add", "a b").err.startswith("yard: name: ")


def test_who_reads_the_jobs_of_a_project_is_said_and_shown(yard: Callable[..., Done]) -> None:
    def shown() -> list[str]:
        return [" ".join(line.split()[:-1]) for line in yard("projects").out.splitlines()[1:]]

    yard("users", "add", "ada")
    assert yard("projects", "create", "vision", "--visibility", "private").code == 0
    assert yard("projects", "members", "add", "vision", "ada").err == "ada is a member of vision\n"
    assert shown() == ["default members everyone on", "vision owners everyone on ada"]
    assert yard("projects", "set", "vision", "--visibility", "everyone").err == (
        "jobs in vision are read by: everyone; everyone submits to it\n"
    )
    closed = yard("projects", "set", "vision", "--submitters", "members").err
    assert closed == "jobs in vision are read by: everyone; only members submit to it\n"
    over = yard("projects", "set", "vision", "--restarts", "off").err
    assert over.endswith("only members submit to it; they never start over after a trial\n")
    assert yard("projects", "set", "vision", "--restarts", "maybe").err.startswith("yard: restarts: ")
    assert yard("projects", "set", "vision", "--visibility", "default", "--json").json["visibility"] == "project"
    assert yard("projects", "members", "remove", "vision", "ada").err == "ada is no member of vision any more\n"
    assert shown() == ["default members everyone on", "vision members members off"]
    assert yard("projects", "create", "lab", "--submitters", "members", "--json").json["submitters"] == "members"
    wrong = yard("projects", "set", "vision", "--visibility", "secret")
    assert (wrong.code, wrong.err.split(": ")[:2]) == (1, ["yard", "visibility"])
    assert "there is no" in yard("projects", "members", "add", "vision", "nobody").err.lower()


def test_how_the_box_is_shared(yard: Callable[..., Done], data_plane: Plane, client: Client, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(yard("policy", "show").out.replace("order: fair", "order: las"))
    assert yard("policy", "set", str(file)).code == 0
    assert yard("policy", "show", "--json").json["order"] == "las"
    file.write_text("orderly: fair\n")
    assert yard("policy", "set", str(file)).err == f"yard: {file}: orderly: unknown field; did you mean order?\n"

    yard("users", "add", "ada")
    made = yard("quota", "set", "user", "ada", "--max-gpus", "4", "--weight", "2.5")
    assert made.err == "user ada: weight 2.5, max_gpus 4\n"
    assert "0 of 4" in yard("quota", "ls").out
    assert yard("quota", "set", "user", "ada", "--max-gpus", "none", "--json").json["own"]["max_gpus"] is None
    assert (
        yard("quota", "set", "user", "ada", "--max-storage", "2TiB").err
        == "user ada: weight 2.5, max_storage 2.0 TiB\n"
    )
    assert "0 B of 2.0 TiB" in yard("quota", "ls").out
    assert yard("quota", "set", "project", "*", "--max-queued", "few").err.startswith("yard: max_queued: ")
    assert {each["name"] for each in yard("quota", "ls", "--json").json} >= {"*", "ada", "default"}

    assert yard("usage").out.split()[:2] == ["USER", "USEFUL"]
    assert yard("usage", "--csv", "--by", "project").out.startswith("project,useful,idle")
    assert yard("usage", "--json", "--weeks", "2").json["rows"] == []
    assert "GPU-hours" in yard("usage", "--digest").out
    assert yard("usage", "--week", "2026-W30", "--json").json["until"] == "2026-07-26"

    assert yard("reservations").err.startswith("no reservations")
    booked = yard(
        "reserve", "disks", "--maintenance", "--node", "elsewhere", "--from", "2090-01-01T09:00", "--for", "8h"
    )
    assert booked.code == 0, booked.err
    assert "maintenance" in yard("reservations").out
    (one,) = yard("reservations", "--json").json
    assert one["id"] == booked.out.strip()
    assert yard("reservations", "--cancel", one["id"]).err.startswith("no reservations")
    assert [each["state"] for each in yard("reservations", "--all", "--json").json] == ["cancelled"]
    assert yard("reserve", "x", "--gpus", "1", "--user", "ada").err == "yard: give either --to or --for\n"
    assert "2026-11-23T09:00" in yard("reserve", "x", "--gpus", "1", "--user", "ada", "--to", "soon").err
    assert "0 of 0 GPUs are free" in yard("reserve", "x", "--gpus", "1", "--user", "ada", "--for", "1h").err
    slot = {"node": "elsewhere", "uuid": "slot", "index": 0, "kind": "cpu", "name": "CPU", "memory": 0}
    with data_plane.ctx.db.write() as tx:
        tx.execute(insert(Device).values(**slot))
    reserved = yard("reserve", "x", "--gpus", "1", "--user", "ada", "--for", "1h").out.strip()
    assert "1 CPU slot " in yard("reservations").out
    yard("reservations", "--cancel", reserved)

    nodes = ("--node", "elsewhere", "--node", home.node_name())
    assert yard("reserve", "fans", "--maintenance", *nodes, "--for", "1h").code == 0
    with data_plane.ctx.db.write() as tx:
        tx.execute(update(Node).values(last_seen_us=data_plane.ctx.now_us(), disk_free=2**40))
    client.submit({"command": ["true"], "launcher": "none", "resources": {"gpus": 0}})
    file.write_text("command: [true]\nlauncher: none\nresources: {gpus: 0}\n")
    for told in (yard("ls").out, yard("submit", "--dry-run", str(file)).err):
        assert "maintenance" in told
        assert "UTC" not in told, "times are on the local clock"


def test_people_tokens_and_nodes(yard: Callable[..., Done], live_service: Live) -> None:
    assert yard("token", "show").out.strip() == live_service.admin_token
    assert yard("users", "add", "ada").code == 0
    assert "ada" in yard("users").out
    secret = yard("token", "create", "laptop", "--user", "ada", "--scope", "read", "--expires", "30d").out.strip()
    assert secret.startswith("ty_")
    assert "laptop" in yard("token", "ls", "--all").out
    made = next(token for token in yard("token", "ls", "--all", "--json").json if token["name"] == "laptop")
    assert yard("token", "revoke", made["id"]).code == 0
    assert "laptop" not in yard("token", "ls", "--all").out
    assert yard("token", "create", "x", "--scope", "everything").err.startswith("yard: scopes.0: ")
    assert yard("nodes").err.startswith("no node has registered")
    assert yard("login", "--json").json["url"].startswith(live_service.url)
    assert yard("version").out.strip()


def test_a_sweep_is_submitted_listed_shown_and_cancelled_as_one(yard: Callable[..., Done], code: Path) -> None:
    file = code / "sweep.yaml"
    file.write_text("command: [train.py, '--lr={lr}']\nlauncher: python\ncode: .\nresources: {gpus: 0}\nname: lrs\n")
    swept = ("submit", str(file), "--set", "sweep={lr: [0.1, 0.01, 0.001]}")
    checked = yard(*swept, "--dry-run").err
    assert "3 jobs, each of 1 process. " in checked
    assert "lrs-3  lr=0.001" in checked
    submitted = yard(*swept)
    assert (submitted.out, submitted.err) == ("1\n", "sweep 1: 3 jobs, numbers 2 and following\n")
    (row,) = [line for line in yard("ls").out.splitlines() if "lrs" in line]
    assert "3 queued" in row
    assert [job["trial"] for job in yard("ls", "--json").json] == [3, 2, 1]
    assert "lrs-2" in yard("ls", "--trials").out
    last = yard("submit", str(file), "--set", "command=[train.py]", "--after", "1, 2", "--json").json
    assert (last["blocked"], last["spec"]["after"]["jobs"]) == (True, ["1", "2"])
    shown = yard("sweep", "show", "1").out
    assert "3 trials: 3 queued" in shown
    assert "0.001" in shown
    assert [job["parameters"] for job in yard("sweep", "show", "1", "--json", "-n", "1").json["trials"]] == [
        {"lr": 0.1}
    ]
    assert "3 held" in yard("sweep", "hold", "1").out
    assert "3 queued" in yard("sweep", "release", "1").out
    assert yard("sweep", "resume", "1", "--json").json["paused"] is None
    assert "3 cancelled" in yard("sweep", "cancel", "1").out
    assert "3 cancelled" in yard("sweep", "ls").out
    assert yard("wait", "1").code == 130
    assert yard("wait", "99").code == 125
    assert yard("show", last["id"], "--json").json["error"]["cause"] == "dependency"


def test_everybody_is_told_what_administrators_have_to_say(
    yard: Callable[..., Done], code: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(code)  # what `run` takes along
    assert yard("announce").err == "nothing is announced\n"
    told = yard("announce", "maintenance at 18:00", "--until", "2h")
    assert "announces: maintenance at 18:00 (until " in told.out
    paused = yard("pause", "replacing a fan")
    assert "the queue is paused by " in paused.out
    assert paused.out.splitlines()[0].endswith("replacing a fan; running jobs go on")
    for words in (("ls",), ("queue",), ("run", "--detach", "--", "true")):
        assert "maintenance at 18:00" in (shown := yard(*words)).err
        assert "warning: the queue is paused" in shown.err
    assert "replacing a fan" in yard("why", "1").out
    assert yard("announce", "--json").json["pause"]["message"] == "replacing a fan"
    assert "maintenance" in yard("resume").out
    assert yard("announce", "--clear").err == "nothing is announced\n"
    assert "warning" not in yard("ls").err
    assert yard("announce", "--until", "2h").code == 2


def test_times_are_those_of_the_services_clock(
    yard: Callable[..., Done], data_plane: Plane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Connection, "now", lambda _connection: datetime.now(UTC) + timedelta(hours=3))
    with data_plane.ctx.db.write() as tx:
        tx.execute(update(Node).values(last_seen_us=data_plane.ctx.now_us()))
    assert "seen 3h" in yard("nodes").out
    yard("users", "add", "ada")
    made = yard("reserve", "course", "--user", "ada", "--node", "elsewhere", "--for", "1h", "--json").json
    assert datetime.fromisoformat(made["ends_at"]) - datetime.fromisoformat(made["starts_at"]) > timedelta(hours=3.9)
    seeded = data_plane.job()
    data_plane.checkpoint(seeded, 10, {"state.pt": b"state"})
    with data_plane.ctx.db.write() as tx:
        tx.execute(update(Checkpoint).values(created_us=data_plane.ctx.now_us()))
    assert "3h ago" in yard("checkpoints", seeded.job).out
    assert "3h ago" in yard("token", "ls", "--all").out
    assert "(3h ago): a fan" in yard("pause", "a fan").out
    assert len(yard("audit", "--until", "2h").out.splitlines()) > 1
    until = yard("announce", "a fan", "--until", "2h", "--json").json["announcement"]["until"]
    assert datetime.fromisoformat(until) - datetime.now(UTC) > timedelta(hours=4.9)
    monkeypatch.setattr(Connection, "now", lambda _connection: datetime.now(UTC) - timedelta(days=40))
    week = yard("usage", "--weeks", "1", "--json").json
    assert date.fromisoformat(week["until"]) - date.fromisoformat(week["since"]) > timedelta(days=40)
