"""What looks like a key or a password, and what only sounds so."""

import pytest

from torchyard.spec.credentials import credentials, named_like_credential


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("WANDB_API_KEY", "0123456789abcdef0123456789abcdef01234567"),
        ("MY_TOKEN", "abc123def456"),
        ("aws_secret_access_key", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
        ("PGPASSWORD", "hunter"),
        ("DB_PASSWORD_FOR_TESTS", "hunter"),
        ("HUB", "hf_abcdefghijklmnopqrstuvwxyz"),
        ("X", "sk-proj-0123456789abcdef"),
        ("X", "ghp_0123456789abcdefghijklmnopqrstuvwxyz"),
        ("X", "AKIAIOSFODNN7EXAMPLE"),
        ("X", "token=glpat-0123456789abcdef"),
        ("X", "-----BEGIN OPENSSH PRIVATE KEY-----\\nb3Bl"),
        ("MLFLOW_TRACKING_URI", "https://me:hunter2@tracking.example/"),
    ],
)
def test_looks_like_a_credential(name: str, value: str) -> None:
    assert credentials({"LR": "0.1", name: value}) == [name]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SORT_KEY", "validation_loss"),
        ("PAD_TOKEN", "<|reserved_special_token_0|>"),
        ("SSH_KEY", "/home/me/.ssh/id_ed25519_2"),
        ("KEY", "3"),
        ("MAX_TOKENS", "4096000000"),
        ("TOKENIZERS_PARALLELISM", "false"),
        ("MONKEY_BUSINESS", "abc123def456"),
        ("DATA", "https://example.org:8080/x@y"),
        ("RUN", "task-0123456789abcdef0123"),
        ("HF_HOME", "/data/hf_cache"),
    ],
)
def test_only_sounds_like_one(name: str, value: str) -> None:
    assert credentials({name: value}) == []


def test_names_alone() -> None:
    assert [named_like_credential(name) for name in ("AWS_SECRET_ACCESS_KEY", "MYSQL_PASSWD", "HF_TOKEN")] == [True] * 3
    assert not named_like_credential("HF_HOME")
