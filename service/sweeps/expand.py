"""Expansion of a sweep's spec into those of its trials. Pure, and the same for the same spec."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from service.errors import ProblemError, field_problems, invalid
from service.sweeps import sampling
from service.sweeps.bindings import ParameterBindings
from torchyard.api import FieldProblem
from torchyard.spec import MAX_NAME, JobSpec, error_messages
from torchyard.spec.sweeps import ENVIRONMENT, Value, written
from torchyard.translatable import TranslatableText

#: Wrong fields of one trial that are named.
MAX_COMPLAINTS = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """One job of a sweep."""

    number: int
    """From 1."""
    parameters: dict[str, Value]
    spec: JobSpec


def trials(spec: JobSpec) -> Iterator[Trial]:
    """Return the trials of a spec that has a sweep, each spec checked as if it had been submitted alone.

    An ``invalid-request`` problem names the parameter and the value that do not work.
    """
    if spec.sweep is None:
        raise ValueError("the spec has no sweep")
    bindings = ParameterBindings(spec)
    return (_trial(number, drawn, bindings) for number, drawn in enumerate(sampling.parameters(spec.sweep), 1))


def _trial(number: int, parameters: dict[str, Value], bindings: ParameterBindings) -> Trial:
    data = bindings.fill(parameters)
    suffix = f"-{number}"
    data["name"] = f"{data['name'][: MAX_NAME - len(suffix)]}{suffix}"
    data["env"] = {**data["env"], ENVIRONMENT: json.dumps(parameters)}
    try:
        spec = JobSpec.model_validate(data)
    except ValidationError as error:
        raise _refused(number, parameters, bindings, error) from error
    return Trial(number=number, parameters=parameters, spec=spec)


def _refused(
    number: int, parameters: Mapping[str, Value], bindings: ParameterBindings, error: ValidationError
) -> ProblemError:
    errors = error.errors(include_url=False)[:MAX_COMPLAINTS]
    words = field_problems(errors, JobSpec)
    return invalid(
        [
            _complaint(
                number, parameters, _blamed(bindings, each["loc"]), problem.field, error_messages.message(each, JobSpec)
            )
            for each, problem in zip(errors, words, strict=True)
        ]
    )


def _blamed(bindings: ParameterBindings, where: tuple[Any, ...]) -> str | None:
    """Return the parameter at an error's place, which names the kind of each noun too (recipe.optim.adam.lr)."""
    fitting = [name for name, path in bindings.paths.items() if _is_along(path, where)]
    return fitting[-1] if fitting else None  # the deepest comes last


def _is_along(path: tuple[str, ...], where: tuple[Any, ...]) -> bool:
    rest = iter(where)
    return all(part in rest for part in path)


def _complaint(number: int, parameters: Mapping[str, Value], blamed: str | None, field: str, why: str) -> FieldProblem:
    if blamed is not None:
        message = TranslatableText(
            "sweep-value", "{value} does not work: {why}", value=written(parameters[blamed]), why=why
        )
        return FieldProblem(field=f"sweep.parameters.{blamed}", message=message)
    values = ", ".join(f"{name} {written(value)}" for name, value in parameters.items())
    message = TranslatableText(
        "sweep-trial",
        "trial {number} ({values}) does not work: {field}: {why}",
        number=number,
        values=values,
        field=field,
        why=why,
    )
    return FieldProblem(field="sweep.parameters", message=message)
