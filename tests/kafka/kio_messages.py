"""Messages of any content in kio's classes, which are generated from Kafka's schemas too."""

import io
import re
import types
from dataclasses import fields, is_dataclass
from datetime import timedelta
from enum import Enum
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

import kio.schema
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode
from kio.serial import entity_writer
from kio.static.primitive import i32Timedelta, i64Timedelta

from featurewatch.kafka.decode import read_entity
from featurewatch.kafka.messages import Message, message_class, request_names, versions_of

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def kio_class(name: str, version: int) -> Any:
    """kio's class of a message in a version, which is imported when it is asked for."""
    package, kind = _module(name)
    return getattr(import_module(f"kio.schema.{package}.v{version}.{kind}"), name)


def _module(name: str) -> tuple[str, str]:
    api = re.sub(r"(Request|Response)$", "", name)
    return _HUMP.sub("_", api).lower(), name.removeprefix(api).lower()


def is_in_kio(name: str, version: int) -> bool:
    """Whether kio has a message in a version."""
    package, kind = _module(name)
    return (Path(kio.schema.__path__[0]) / package / f"v{version}" / f"{kind}.py").exists()


def pair_of(name_and_version: tuple[str, int]) -> tuple[Any, Any]:
    """Our class and kio's of an entry of `PAIRS`."""
    return message_class(*name_and_version), kio_class(*name_and_version)


PAIRS = [
    (name, version)
    for api in request_names().values()
    for name in (f"{api}Request", f"{api}Response")
    for version in range(versions_of(name)[0], versions_of(name)[1] + 1)
    if is_in_kio(name, version)
]
"""Each message and version that we and kio have, without the classes: a process that runs none of
these tests need not import 250 modules."""

PLAIN = {
    "bool": st.booleans(),
    "int8": st.integers(-(2**7), 2**7 - 1),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "uint16": st.integers(0, 2**16 - 1),
    "string": st.text(max_size=10),
    "bytes": st.binary(max_size=40),
    "records": st.binary(max_size=40),
    "uuid": st.uuids(version=4),
    "error_code": st.sampled_from(ErrorCode),
    "timedelta_i32": st.from_type(i32Timedelta),
    "timedelta_i64": st.from_type(i64Timedelta),
}


@cache  # a strategy finds out once what it can draw
def instances(kind: Any) -> st.SearchStrategy[Any]:
    """Messages of a class of kio's."""
    hints = get_type_hints(kind)
    return st.builds(
        kind,
        **{
            entity_field.name: _field(hints[entity_field.name], entity_field.metadata)
            for entity_field in fields(kind)
        },
    )


def _field(hint: Any, metadata: Any) -> st.SearchStrategy[Any]:
    nothing: st.SearchStrategy[Any] = st.nothing()
    if get_origin(hint) in (Union, types.UnionType):
        nothing = st.none()
        (hint,) = [part for part in get_args(hint) if part is not type(None)]
    if get_origin(hint) is tuple:
        item = _field(get_args(hint)[0], metadata)
        return nothing | st.lists(item, max_size=3).map(tuple)
    if is_dataclass(hint):
        return nothing | instances(cast("Any", hint))
    return nothing | PLAIN[metadata["kafka_type"]]


def written(message: Any) -> bytes:
    """A message as kio writes it."""
    buffer = io.BytesIO()
    entity_writer(type(message))(buffer, message)
    return buffer.getvalue()


def ours(message: Any) -> Any:
    """Our message from the bytes of kio's."""
    kind = message_class(type(message).__name__, int(message.__version__))
    read, _ = read_entity(kind, written(message))
    return read


def plain(value: Any) -> Any:
    """A message of either kind as nested dictionaries of numbers, texts, bytes and lists."""
    if isinstance(value, Message):
        return {
            field.name.removesuffix("_ms"): plain(getattr(value, field.name))
            for field in value.__fields__
        }
    if is_dataclass(value):
        return {
            # kio writes "id_" where Python has a function "id".
            field.name.removesuffix("_").removesuffix("_ms"): plain(getattr(value, field.name))
            for field in fields(value)
        }
    if isinstance(value, timedelta):
        return value // timedelta(milliseconds=1)
    if isinstance(value, Enum):
        return value.value
    return tuple(map(plain, value)) if isinstance(value, tuple) else value


def name_of(name_and_version: tuple[str, int]) -> str:
    """For the test's id."""
    name, version = name_and_version
    return f"{name}-{version}"
