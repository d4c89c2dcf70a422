"""Writes the reference configuration: ``python -m featurewatch.cli.config.reference_config >
deploy/reference.yaml``."""

import sys
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from featurewatch.cli.config.notify_settings import NotifySection
from featurewatch.cli.config.settings import (
    BusSection,
    ClusterSection,
    ReadinessSection,
    ReplaySection,
    WebSection,
    WorkerSection,
)

_HEAD = """\
# Every setting of featurewatch with its default, commented out; give the file with --config.
# A flag goes over an environment variable, and that over this file. The variable of a setting is
# FEATUREWATCH_<SECTION>__<NAME>: FEATUREWATCH_BUS__BOOTSTRAP_SERVERS."""

_SECTIONS: tuple[tuple[str, type[BaseModel]], ...] = (
    ("bus", BusSection),
    ("clusters", ClusterSection),
    ("worker", WorkerSection),
    ("readiness", ReadinessSection),
    ("web", WebSection),
    ("notify", NotifySection),
    ("replay", ReplaySection),
)
_COMPUTED = {"data_directory": "$XDG_STATE_HOME/featurewatch, or ~/.local/state/featurewatch"}


def render() -> str:
    """The text of the reference configuration."""
    return (
        "\n".join([_HEAD, *(line for section in _SECTIONS for line in _section(*section))]) + "\n"
    )


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


if __name__ == "__main__":
    sys.stdout.write(render())
