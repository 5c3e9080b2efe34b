from pathlib import Path

import pytest

from service.simulator.exceptions import QuotaError
from service.simulator.quotas import Quotas, read, startable
from service.simulator.trace import Cluster
from tests.support.traces import job

BOX = Cluster(nodes=2, gpus=8)


def test_who_has_no_value_of_their_own_has_everybodys(tmp_path: Path) -> None:
    file = tmp_path / "quotas.yaml"
    file.write_text('users: {"*": {max_gpus: 4, weight: 2}, ada: {weight: 3}, 7: {max_gpu_hours: 1}}')
    found = read(file).of("user", ["ada", "bob", "7"])
    assert {name: (own.weight, own.max_gpus, own.max_gpu_hours) for name, own in found.items()} == {
        "ada": (3, 4, None),
        "bob": (2, 4, None),
        "7": (2, 4, 1),
    }
    assert read(file).weights(["ada", "bob"]) == {"ada": 3, "bob": 2}
    assert read(file).of("project", ["default"]) == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("user: {}", "user: unknown field; did you mean users?"),
        ("users: {ada: {max_gpu: 1}}", "users.ada.max_gpu: unknown field; did you mean max_gpus?"),
        ("projects: {p: {weight: 0}}", "projects.p.weight: 0 is too small: it must be greater than 0"),
        ("users: {ada: {max_queued: 1}}", "users.ada: max_queued: a simulation refuses no submission, so leave it out"),
        (
            "users: {ada: {max_storage: 1}}",
            "users.ada: max_storage: a simulation refuses no submission, so leave it out",
        ),
        ("[ada]", "quotas are two mappings, `users` and `projects`, such as"),
        ("{", "is not valid YAML"),
    ],
)
def test_errors_name_file_field_and_mend(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "quotas.yaml"
    file.write_text(text)
    with pytest.raises(QuotaError) as refused:
        read(file)
    assert str(file) in str(refused.value)
    assert message in str(refused.value)


def test_names_that_the_trace_does_not_know_are_told() -> None:
    quotas = Quotas.model_validate({"users": {"*": {}, "adda": {}, "xyzzy": {}}, "projects": {"default": {}}})
    assert quotas.strangers([job(0, 1, user="ada")]) == [
        "users.adda: the trace has no jobs of this user; did you mean ada?",
        "users.xyzzy: the trace has no jobs of this user",
    ]


def test_jobs_that_could_never_start_are_left_out() -> None:
    """13 GPUs on nodes of 8 hold 14."""
    jobs = [job(0, 1, gpus=13), job(1, 1, gpus=12), job(2, 1, user="bob")]
    quotas = Quotas.model_validate({"users": {"ada": {"max_gpus": 13}, "bob": {"max_gpu_hours": 0}}})
    kept, warning = startable(jobs, BOX, quotas)
    assert kept == [jobs[1]]
    assert warning == (
        "2 jobs that could never start are left out of the simulation; line 0, max_gpu_hours of user bob is 0"
    )
    assert startable(jobs, BOX, Quotas()) == (jobs, None)


def test_quotas_that_let_nothing_start_are_refused() -> None:
    quotas = Quotas.model_validate({"projects": {"default": {"max_gpus": 0}}})
    with pytest.raises(QuotaError, match="no job could ever start: line 0, num_gpus: 1 GPUs are more than max_gpus of"):
        startable([job(0, 1)], BOX, quotas)
