"""Jobs by a text: part of a name, a number, or the beginning of an id.

A text that many names have is found soon by reading a list in its order. For one that few have, that would read all
jobs: their numbers come from the trigrams of the names (migration 0026). A text that is too short for one, or of which
too many names have each part, is looked for in the order of the list.
"""

import re

from sqlalchemy import ColumnElement, Connection, String, false, func, or_, select, text
from sqlalchemy.dialects.postgresql import ARRAY

from service.db.models import Job

ID_PREFIX = "job-"
#: Characters of a trigram.
LEAST = 3
#: The newest jobs tell whether many names have a text.
SAMPLE, MANY = 5_000, 25
#: Jobs that are taken from the trigrams at most.
MOST = 5_000
#: In SQLite a text's rarest trigrams are looked up, of so many; how rare one is, the newest jobs that have it tell.
RAREST, TRIGRAMS, DEPTH = 3, 24, 100

_NEWEST = select(func.max(Job.number))
_NAMED = text("SELECT rowid FROM job_names WHERE job_names MATCH :words ORDER BY rowid DESC LIMIT :most")
_DEEP = "(SELECT rowid FROM job_names WHERE job_names MATCH :t{} ORDER BY rowid DESC LIMIT 1 OFFSET :depth)"


def matches(words: str) -> ColumnElement[bool]:
    """Return the condition of a name, and of an id or number where the words can be one."""
    alternatives = [_named(words)]
    if words.startswith(ID_PREFIX):
        alternatives.append(Job.id.startswith(words, autoescape=True))
    if _is_number(words):
        alternatives.append(Job.number == int(words))
    return or_(*alternatives)


def candidates(tx: Connection, words: str) -> list[int] | None:
    """Return the numbers of all jobs that can match; None where these are too many, or cannot be told soon."""
    if len(_recent(tx, words, SAMPLE, MANY)) == MANY:
        return None
    sqlite = tx.dialect.name == "sqlite"
    if len(words) < LEAST:
        return None
    named = _rarest(tx, words) if sqlite else _indexed(tx, words)
    ids = list(tx.scalars(select(Job.number).where(_begins(words, sqlite=sqlite)).limit(MOST)))
    if MOST in (len(named), len(ids)):
        return None
    return [*named, *ids, *([int(words)] if _is_number(words) else [])]


def _named(words: str) -> ColumnElement[bool]:
    return Job.name.icontains(words, autoescape=True)


def _is_number(words: str) -> bool:
    return words.isascii() and words.isdigit() and len(words) <= 18


def _begins(words: str, *, sqlite: bool) -> ColumnElement[bool]:
    """Return the condition of ids that begin so, as an index has them."""
    if not re.fullmatch(rf"{ID_PREFIX}[0-9A-Za-z-]*", words):
        return false()
    return Job.id.between(words.lower(), f"{words.lower()}\x7f") if sqlite else Job.id.like(f"{words}%")


def _recent(tx: Connection, words: str, jobs: int, most: int) -> list[int]:
    """Return numbers of jobs that have the words in their names, of the newest so many jobs."""
    after = (tx.scalar(_NEWEST) or 0) - jobs
    query = select(Job.number).where(Job.number > after, _named(words)).order_by(Job.number.desc()).limit(most)
    return list(tx.scalars(query))


def _indexed(tx: Connection, words: str) -> list[int]:
    """Return the numbers of the jobs whose names have the words, or as many as have their trigrams if these are many.

    The index knows trigrams alone: names that have all of them, but not in this order, are read for nothing.
    """
    trigrams = func.name_trigrams(Job.name, type_=ARRAY(String))
    some = select(Job.number, Job.name).where(trigrams.contains(func.name_trigrams(words))).limit(MOST).subquery()
    found = tx.execute(select(some.c.number, some.c.name.icontains(words, autoescape=True))).all()
    return [number for number, has_words in found if has_words or len(found) == MOST]


def _rarest(tx: Connection, words: str) -> list[int]:
    """Return the numbers of the jobs whose names have the rarest trigrams of the words."""
    trigrams = list(dict.fromkeys(words[at : at + LEAST] for at in range(len(words) - LEAST + 1)))[-TRIGRAMS:]
    tokens = {f"t{n}": '"{}"'.format(trigram.replace('"', '""')) for n, trigram in enumerate(trigrams)}
    deep = tx.execute(text("SELECT " + ", ".join(map(_DEEP.format, range(len(tokens))))), {**tokens, "depth": DEPTH})
    # The one before which fewer of the newest jobs have it is the rarer.
    rarest = sorted(zip((number or 0 for number in deep.one()), tokens.values(), strict=True))[:RAREST]
    return list(tx.scalars(_NAMED, {"words": " ".join(token for _, token in rarest), "most": MOST}))
