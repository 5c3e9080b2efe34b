from pathlib import Path

import pytest

from service.tls import Certificate, problem
from tests.support import certificates


def test_a_renewed_certificate_is_loaded_once(tmp_path: Path) -> None:
    certificate = Certificate(*certificates.write(tmp_path))
    assert not certificate.look()
    certificates.write(tmp_path)
    assert certificate.look()
    assert not certificate.look()


def test_half_of_a_renewal_changes_nothing(tmp_path: Path) -> None:
    files = certificates.write(tmp_path)
    certificate = Certificate(*files)
    (tmp_path / "new").mkdir()
    new = certificates.write(tmp_path / "new")
    files[0].write_bytes(new[0].read_bytes())
    assert not certificate.look()
    files[1].write_bytes(new[1].read_bytes())
    assert certificate.look()


def test_files_that_cannot_be_served_are_named(tmp_path: Path) -> None:
    certificate, key = certificates.write(tmp_path)
    assert problem(None, None) is None
    assert problem(certificate, key) is None
    assert "give both" in str(problem(certificate, None))
    assert "tls_key: there is no file" in str(problem(certificate, tmp_path / "gone"))
    assert "are no certificate and its key" in str(problem(key, key))
    key.chmod(0o644)
    assert "(mode 0644) is open to other accounts" in str(problem(certificate, key))


@pytest.mark.parametrize("gone", ["cert.pem", "key.pem"])
def test_a_certificate_that_has_gone_stays_served(tmp_path: Path, gone: str) -> None:
    certificate = Certificate(*certificates.write(tmp_path))
    (tmp_path / gone).unlink()
    assert not certificate.look()
