"""The values of each trial: every combination, or so many drawn by chance. Pure, and the same for the same seed."""

import itertools
import json
import math
import random
from collections.abc import Iterator

from torchyard.spec.sweeps import Integer, LogUniform, Range, Sweep, Uniform, Value, Values

#: Significant digits of drawn numbers: as many as a person reads in a table and types again.
DIGITS = 6


def parameters(sweep: Sweep) -> list[dict[str, Value]]:
    """Return the values of each trial, in order. What can be counted is drawn without repetition."""
    if sweep.trials is None:
        return list(_grid(sweep))
    different = sweep.combinations is not None
    return list(itertools.islice(_distinct(_draws(sweep)) if different else _draws(sweep), sweep.trials))


def _grid(sweep: Sweep) -> Iterator[dict[str, Value]]:
    """Return every combination; the last parameter changes first."""
    lists = [_listed(values) for values in sweep.parameters.values()]
    for combination in itertools.product(*lists):
        yield dict(zip(sweep.parameters, combination, strict=True))


def _listed(values: Values) -> tuple[Value, ...] | range:
    match values:
        case Range(range=(start, end)):
            return range(start, end)
        case tuple():
            return values
    raise TypeError(f"{values!r} cannot be listed")  # the schema asks for `trials` then


def _draws(sweep: Sweep) -> Iterator[dict[str, Value]]:
    # `random()` alone is promised to give the same numbers in every version of Python.
    chance = random.Random(sweep.seed)  # noqa: S311  no secret
    while True:
        yield {name: _drawn(values, chance.random()) for name, values in sweep.parameters.items()}


def _drawn(values: Values, chance: float) -> Value:
    match values:
        case Uniform(uniform=(low, high)):
            return _rounded(low + (high - low) * chance, low, high)
        case LogUniform(loguniform=(low, high)):
            return _rounded(math.exp(math.log(low) + (math.log(high) - math.log(low)) * chance), low, high)
        case Integer(integer=(first, last)):
            return first + int(chance * (last - first + 1))
        case Range(range=(start, end)):  # which may be too long for a list
            return start + int(chance * (end - start))
    listed = _listed(values)
    return listed[int(chance * len(listed))]


def _rounded(value: float, low: float, high: float) -> float:
    return min(max(float(f"{value:.{DIGITS}g}"), low), high)


def _distinct(draws: Iterator[dict[str, Value]]) -> Iterator[dict[str, Value]]:
    seen: set[str] = set()
    for drawn in draws:
        if (key := json.dumps(list(drawn.values()))) not in seen:
            seen.add(key)
            yield drawn
