import os
import pwd
from pathlib import Path

import pytest

from torchyard import home
from worker.exceptions import IdentityError
from worker.launching.identity import check_access, identity, runs_as

OWN = pwd.getpwuid(os.geteuid()).pw_name


def test_the_workers_own_user_needs_no_change() -> None:
    assert identity("ada", OWN, one_trust_domain=False, root_jobs=True) is None


def test_nobodys_jobs_run_as_root_unless_the_administrator_says_so(
    monkeypatch: pytest.MonkeyPatch, open_tmp: Path
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(home, "account_name", lambda: "root")
    with pytest.raises(IdentityError, match=r"would run as root.*users set ada --unix-user.*TORCHYARD_ROOT_JOBS=1"):
        identity("ada", "root", one_trust_domain=False)
    assert not runs_as("root", one_trust_domain=False, attempts=open_tmp)
    for accepted in ({"one_trust_domain": True}, {"one_trust_domain": False, "root_jobs": True}):
        assert identity("ada", "root", **accepted) is None
        assert runs_as("root", **accepted, attempts=open_tmp)


def test_one_trust_domain_needs_no_account() -> None:
    assert identity("ada", None, one_trust_domain=True) is None


@pytest.mark.parametrize("uid", [0, 54321])
def test_whoever_has_no_account_is_not_run_as_the_worker(monkeypatch: pytest.MonkeyPatch, uid: int) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    with pytest.raises(IdentityError, match="ada has no UNIX account"):
        identity("ada", None, one_trust_domain=False)


def test_root_becomes_the_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    found = identity("ada", "nobody", one_trust_domain=False)
    assert found is not None
    assert found.uid == pwd.getpwnam("nobody").pw_uid
    assert found.gid in found.groups


def test_no_job_runs_as_the_account_of_the_service(monkeypatch: pytest.MonkeyPatch, open_tmp: Path) -> None:
    """The account of an installed machine's first administrator is that of the service itself."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    token = open_tmp / "node.token"
    assert runs_as("nobody", one_trust_domain=False, token_file=token, attempts=open_tmp)
    token.touch()
    entry, uid = pwd.getpwnam("nobody"), os.getuid() or 54321
    os.chown(token, uid, -1)
    monkeypatch.setattr(pwd, "getpwnam", lambda _: pwd.struct_passwd((*entry[:2], uid, *entry[3:])))
    with pytest.raises(IdentityError, match=r"run as nobody, .*node.token belongs.*`yard users set ada --unix-user"):
        identity("ada", "nobody", one_trust_domain=False, token_file=token)
    assert not runs_as("nobody", one_trust_domain=False, token_file=token, attempts=open_tmp)


def test_root_by_another_name_is_nobodys_account(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = pwd.struct_passwd(("toor", "x", 0, 0, "", "/root", "/bin/sh"))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "getgrouplist", lambda *_: [0])
    monkeypatch.setattr(pwd, "getpwnam", lambda _: entry)
    with pytest.raises(IdentityError, match="toor of eve is root by another name"):
        identity("eve", "toor", one_trust_domain=True)


def test_anybody_else_refuses_other_peoples_jobs_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    with pytest.raises(IdentityError, match="run it as root; or start it with TORCHYARD_ONE_TRUST_DOMAIN=1"):
        identity("ada", "nobody", one_trust_domain=False)
    assert identity("ada", "nobody", one_trust_domain=True) is None


def test_as_whom_jobs_can_run(monkeypatch: pytest.MonkeyPatch, open_tmp: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert runs_as("nobody", one_trust_domain=False, attempts=open_tmp)
    assert not runs_as("no-such-user", one_trust_domain=False, attempts=open_tmp)
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    assert not runs_as("nobody", one_trust_domain=False, attempts=open_tmp)
    assert runs_as("nobody", one_trust_domain=True, attempts=open_tmp)


def test_nobody_is_run_who_cannot_reach_their_attempts(monkeypatch: pytest.MonkeyPatch, open_tmp: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    attempts = open_tmp / "worker" / "attempts"
    attempts.mkdir(parents=True)
    attempts.parent.chmod(0o700)
    assert runs_as(OWN, one_trust_domain=False, root_jobs=True, attempts=attempts) == (OWN == "root")
    assert not runs_as("nobody", one_trust_domain=False, attempts=attempts)
    who = identity("ada", "nobody", one_trust_domain=False)
    assert who is not None
    with pytest.raises(IdentityError, match=r"nobody may not enter .*/worker \(mode 0700, .*the worker's log says how"):
        check_access(who, attempts)
    check_access(who, open_tmp)
