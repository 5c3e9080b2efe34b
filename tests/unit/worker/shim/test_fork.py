import errno

import pytest

from worker.shim import fork


@pytest.mark.parametrize(
    ("program", "ending"), [("pyhton", "on the job's PATH; did you mean python?"), ("python", "on the job's PATH")]
)
def test_a_program_that_is_not_there_names_the_one_that_is_meant(program: str, ending: str) -> None:
    assert fork._explain(FileNotFoundError(errno.ENOENT, "no"), "/code", program).endswith(ending)


def test_other_errors_are_told_in_the_systems_words() -> None:
    assert "Permission denied" in fork._explain(PermissionError(errno.EACCES, "Permission denied"), "/code", "x")
    assert "#! line" in fork._explain(OSError(errno.ENOEXEC, "?"), "/code", "x")
