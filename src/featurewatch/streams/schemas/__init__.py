"""The JSON Schemas of the topics' values, for readers of the topics in other languages.

``make generate`` writes them.
"""

from importlib.resources import files
from typing import Any, cast

import orjson

from featurewatch.streams.topics import EPOCHS, STATE, Topic


def schema_of(topic: Topic) -> dict[str, Any]:
    """Returns the JSON Schema (2020-12) of the values on a topic; `FileNotFoundError`: it has none.

    It refers to no other file: that of ``state`` includes what its file refers to.
    """
    schema = _read(topic)
    if topic == STATE:
        del schema["$ref"]
        schema = {**_read(EPOCHS), **schema}
    return schema


def asyncapi() -> bytes:
    """Returns the AsyncAPI 3 description of the topics, as JSON."""
    return files("featurewatch.streams").joinpath("asyncapi.json").read_bytes()


def _read(topic: Topic) -> dict[str, Any]:
    text = files(__name__).joinpath(f"{topic.short_name}.json").read_bytes()
    return cast("dict[str, Any]", orjson.loads(text))


def described() -> frozenset[str]:
    """Returns the short names of the topics that have a schema."""
    return frozenset(
        file.name.removesuffix(".json")
        for file in files(__name__).iterdir()
        if file.name.endswith(".json")
    )
