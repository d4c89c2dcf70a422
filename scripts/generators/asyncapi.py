"""The AsyncAPI 3 description of the topics.

It follows from the registry of topics, their JSON Schemas and the examples in
``docs/reference/topics.md``. AsyncAPI's own schemas are of draft 7 and resolve references from the
begin of the whole document, so the definitions of each topic's schema become components.
"""

import json
import re
from typing import Any, Final

import orjson

from featurewatch.streams.bus.settings import MAX_MESSAGE_BYTES
from featurewatch.streams.codec.events import Message, decode, encode
from featurewatch.streams.codec.outputs import TOPICS, decode_output, encode_output, encode_state
from featurewatch.streams.codec.shapes import KINDS
from featurewatch.streams.outputs import Snapshot
from featurewatch.streams.schemas import schema_of
from featurewatch.streams.topics import ALL, PREFIX, RESYNC_REQUESTS, STATE, Topic
from scripts.generators import ROOT, Texts

Json = dict[str, Any]

FILE: Final = ROOT / "src/featurewatch/streams/asyncapi.json"
_EXAMPLES: Final = ROOT / "docs/reference/topics.md"
_BINDING: Final = "0.5.0"
_NUMBERS: Final = ("retention.ms", "max.message.bytes", "segment.ms", "segment.bytes")

_HEADERS: Final[Json] = {
    "ce_specversion": {"const": "1.0"},
    "ce_id": {"description": "The same if the message is published twice."},
    "ce_type": {"description": "featurewatch.<topic>.<kind>, whatever prefix the topics have."},
    "ce_source": {"description": "The cluster and the topic."},
    "ce_time": {"description": "When the source saw it.", "format": "date-time"},
    "ce_dataschema": {
        "description": "From version 2 of the topic's schema on: the schema's $id. Without it the "
        "version is 1."
    },
    "content-type": {"const": "application/json"},
}


def asyncapi() -> Texts:
    """Yields the description."""
    yield FILE, json.dumps(document(), indent=1) + "\n"


def document() -> Json:
    """Returns the description, as JSON."""
    components: Json = {"messages": {}, "schemas": {"headers": _headers()}}
    for topic in ALL:
        components["schemas"] |= _schemas(topic)
        components["messages"][topic.short_name] = _message(topic)
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "featurewatch",
            "version": "1",
            "description": "What featurewatch publishes to Kafka. Fields may be added; one is "
            "removed or gets another type only in a new version of its topic's schema, which "
            "messages name in the header ce_dataschema. Fields that end in _ms are milliseconds "
            "since the Unix epoch; -1 is not known.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "channels": {topic.short_name: _channel(topic) for topic in ALL},
        "operations": dict(_operations()),
        "components": components,
    }


def _channel(topic: Topic) -> Json:
    policy = topic.config.get("cleanup.policy", "delete")
    settings = {"max.message.bytes": str(MAX_MESSAGE_BYTES), **topic.config}
    configuration: Json = {
        name: int(value) if name in _NUMBERS else value for name, value in settings.items()
    }
    return {
        "address": f"{{prefix}}.{topic.short_name}",
        "description": f"{topic.about[0].upper()}{topic.about[1:]}. {_kept(topic)}",
        "messages": {topic.short_name: {"$ref": f"#/components/messages/{topic.short_name}"}},
        "parameters": {"prefix": {"description": "A setting of the bus.", "default": PREFIX}},
        "bindings": {
            "kafka": {
                "topicConfiguration": {**configuration, "cleanup.policy": [policy]},
                "bindingVersion": _BINDING,
            }
        },
    }


def _kept(topic: Topic) -> str:
    if topic.is_compacted:
        return "The bus keeps the newest message of each key."
    if "retention.ms" in topic.config:
        hours = int(topic.config["retention.ms"]) // 3_600_000
        return f"Messages are kept {hours} hours."
    return "Messages are kept as long as the bus keeps them by default."


def _operations() -> Any:
    for topic in ALL:
        channel = {"$ref": f"#/channels/{topic.short_name}"}
        yield f"publish-{topic.short_name}", {"action": "send", "channel": channel}
    yield (
        f"take-{RESYNC_REQUESTS.short_name}",
        {"action": "receive", "channel": {"$ref": f"#/channels/{RESYNC_REQUESTS.short_name}"}},
    )


def _message(topic: Topic) -> Json:
    sent = _example(topic)
    headers = {name: value.decode() for name, value in sent.headers}
    return {
        "name": topic.name(),
        "title": topic.about,
        "headers": {"$ref": "#/components/schemas/headers"},
        "payload": {"$ref": f"#/components/schemas/{topic.short_name}"},
        "bindings": {
            "kafka": {
                "key": {"type": "string", "description": f"The {topic.key}."},
                "bindingVersion": _BINDING,
            }
        },
        "examples": [{"headers": headers, "payload": orjson.loads(sent.value or b"")}],
    }


def _headers() -> Json:
    return {
        "description": "The attributes of a CloudEvent, in the binary mode of the Kafka binding.",
        "type": "object",
        "required": [name for name in _HEADERS if name != "ce_dataschema"],
        "properties": {name: {"type": "string", **about} for name, about in _HEADERS.items()},
    }


def _schemas(topic: Topic) -> Json:
    """The schema of a topic's values and its definitions, by their names among the components."""
    schema = schema_of(topic)
    definitions = schema.pop("$defs", {})
    for name in ("$schema", "$id"):
        del schema[name]
    if topic == STATE:
        schema["description"] += " A message without a value: the cluster was retired."
    named = {topic.short_name: schema} | {
        f"{topic.short_name}.{name}": each for name, each in definitions.items()
    }
    text = json.dumps(named).replace('"#/$defs/', f'"#/components/schemas/{topic.short_name}.')
    result: Json = json.loads(text)
    return result


def _example(topic: Topic) -> Message:
    """The message of a topic's example in the documents."""
    page = _EXAMPLES.read_text()
    section = page.partition(f"## {topic.name()}\n")[2].partition("\n## ")[0]
    block = re.search(r"```json\n(.*?)```", section, re.DOTALL)
    if block is None:
        raise ValueError(f"docs/reference/topics.md has no example for {topic.name()}")
    value = orjson.dumps(orjson.loads(block[1]))
    if topic.short_name in KINDS:
        return encode(topic, decode(topic, value))
    if topic == STATE:
        return encode_state(decode_output(Snapshot, value))
    (cls,) = (cls for cls, its_topic in TOPICS.items() if its_topic == topic)
    return encode_output(decode_output(cls, value))
