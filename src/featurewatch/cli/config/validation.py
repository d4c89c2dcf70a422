"""Explains an error in settings in one line: the field, its origin, what it must be."""

import difflib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from featurewatch.cli.config.values import ENVIRONMENT

_Place = tuple[int | str, ...]


def explain_validation_error(
    error: ValidationError, model: type[BaseModel], file: Path | None, content: Mapping[str, Any]
) -> str:
    """The first error that pydantic found; ``content`` is that of ``file``."""
    first = error.errors()[0]
    place: _Place = first["loc"]
    name = ".".join(map(str, place))
    origin = _origin(place, file, content)
    if first["type"] == "extra_forbidden":
        names = list(_fields(model, place[:-1]))
        close = difflib.get_close_matches(str(place[-1]), names, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(names)}"
        return f"there is no setting {name}{origin}: {hint}"
    text = first["msg"].removeprefix("Value error, ")
    return f"the setting {name}{origin} is wrong: {text[0].lower()}{text[1:]}"


def _fields(model: type[BaseModel], place: _Place) -> Iterable[str]:
    """The names that are allowed at a place."""
    for part in place:
        field = model.model_fields.get(str(part))
        if field is None:
            continue  # an index into a list
        kinds = (field.annotation, *getattr(field.annotation, "__args__", ()))
        model = next(
            (kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)),
            model,
        )
    return model.model_fields


def _origin(place: _Place, file: Path | None, content: Mapping[str, Any]) -> str:
    """Where a setting was given: environment over file; nothing for a flag."""
    variable = ENVIRONMENT + "__".join(map(str, place)).upper()
    for name in os.environ:
        if name.upper() == variable:
            return f" (environment variable {name})"
    inside: Any = content
    try:
        for part in place:
            inside = inside[part]
    except (KeyError, IndexError, TypeError):
        return ""
    return f" ({file})"
