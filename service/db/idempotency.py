"""Idempotency keys: a submission that is sent again makes no second job."""

import hashlib

from sqlalchemy import Connection, delete, exists, insert, select

from service.db.models import IdempotencyKey
from service.errors import ProblemError, field_problem
from torchyard.ids import JobId
from torchyard.quantities import SECONDS
from torchyard.translatable import TranslatableText

#: After this the key may make another job.
KEPT_US = 7 * SECONDS["d"] * 1_000_000
MAX_KEY = 200


def fingerprint(*parts: bytes) -> str:
    """Return what two requests must have in common to be the same."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()


def check(key: str | None) -> str | None:
    """The key, if its form is right."""
    if key is not None and not (1 <= len(key) <= MAX_KEY and key.isascii() and key.isprintable()):
        raise field_problem(
            "Idempotency-Key",
            TranslatableText("key-form", "must be 1 to {most} printable ASCII characters", most=MAX_KEY),
        )
    return key


def is_used(tx: Connection, user_id: str, key: str, now: int) -> bool:
    """Return true if the key has made a job, whatever its request was."""
    used = exists().where(
        IdempotencyKey.user_id == user_id, IdempotencyKey.key == key, IdempotencyKey.created_us >= now - KEPT_US
    )
    return tx.scalar(select(used)) is True


def find(tx: Connection, user_id: str, key: str, body_sha256: str, now: int) -> JobId | None:
    """Return the id of the job that this key has made; ``idempotency-mismatch`` if its request was another."""
    mine = (IdempotencyKey.user_id == user_id, IdempotencyKey.key == key)
    row = tx.execute(select(IdempotencyKey.__table__).where(*mine)).one_or_none()
    if row is None:
        return None
    if row.created_us < now - KEPT_US:
        tx.execute(delete(IdempotencyKey).where(*mine))
        return None
    if row.body_sha256 != body_sha256:
        raise ProblemError(
            "idempotency-mismatch",
            TranslatableText("key-used", "This Idempotency-Key has made another job: take a new key for a new job."),
        )
    return JobId(row.job_id)


def remember(tx: Connection, user_id: str, key: str, body_sha256: str, job_id: JobId, now: int) -> None:
    """Store what a key has made."""
    tx.execute(
        insert(IdempotencyKey).values(user_id=user_id, key=key, body_sha256=body_sha256, job_id=job_id, created_us=now)
    )
