"""The reference configuration, ``deploy/reference.yaml``, which ``make generate`` writes."""

from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from featurewatch.cli.config.settings import Settings

_HEAD = """\
# Every setting of featurewatch with its default, commented out; give the file with --config.
# A flag overrides an environment variable, which overrides this file. The variable of a setting is
# FEATUREWATCH_<SECTION>__<NAME>, such as FEATUREWATCH_BUS__BOOTSTRAP_SERVERS."""

_COMPUTED = {
    "data_directory": "$XDG_STATE_HOME/featurewatch, or ~/.local/state/featurewatch",
    "directory": "$XDG_DATA_HOME/featurewatch/releases, or ~/.local/share/featurewatch/releases",
}


def render() -> str:
    """Returns the text of the reference configuration."""
    lines = [_HEAD]
    for name, info in Settings.model_fields.items():
        annotation: Any = info.annotation
        (model,) = get_args(annotation) or (annotation,)
        lines += _section(name, model)
    return "\n".join(lines) + "\n"


def _section(name: str, model: type[BaseModel]) -> Iterator[str]:
    yield ""
    yield f"# {(model.__doc__ or '').strip()}"
    yield f"# {name}:"
    for number, (field, info) in enumerate(model.model_fields.items()):
        marker = "  " if name != "clusters" else "- " if number == 0 else "  "
        yield f"#     # {info.description}"
        yield f"#   {marker}{field}: {_default(field, info)}"


def _default(name: str, info: FieldInfo) -> str:
    default: Any = info.default
    if default is PydanticUndefined:
        return f"null  # {_COMPUTED[name]}"
    if default is None:
        return "null"
    return f'"{default}"' if isinstance(default, str) else str(default)
