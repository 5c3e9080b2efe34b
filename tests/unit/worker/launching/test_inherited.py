import pytest

from worker.launching.inherited import inherited


@pytest.mark.parametrize(
    "name",
    [
        *("AWS_SECRET_ACCESS_KEY", "DATABASE_URL", "GITHUB_TOKEN", "SSH_AUTH_SOCK", "NOTIFY_SOCKET"),
        *("WANDB_API_KEY", "HF_TOKEN", "MLFLOW_TRACKING_PASSWORD", "TORCHYARD_TOKEN", "CELERY_BROKER_URL"),
    ],
)
def test_what_the_starter_of_the_worker_has_does_not_reach_jobs(name: str) -> None:
    assert inherited({name: "x"}) == {}


@pytest.mark.parametrize(
    "name",
    [
        *("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "CUDA_HOME", "NCCL_DEBUG", "HF_HOME", "TORCHYARD_DATA"),
        *("https_proxy", "NO_PROXY", "SSL_CERT_FILE", "TOKENIZERS_PARALLELISM", "MLFLOW_TRACKING_URI"),
    ],
)
def test_settings_of_the_machine_and_of_libraries_pass(name: str) -> None:
    assert inherited({name: "x"}) == {name: "x"}


def test_an_administrator_may_add_names() -> None:
    own = {"SCRATCH": "/scratch", "OTHER": "x", "PYTHONPATH": "/ty"}
    assert inherited(own, ["SCRATCH", "PYTHONPATH"]) == {"SCRATCH": "/scratch"}
