"""The AsyncAPI description of the topics."""

import gzip
import subprocess
from pathlib import Path
from typing import Any

import orjson
import pytest
from jsonschema_rs import Draft7Validator, Draft202012Validator

from featurewatch.streams.schemas import asyncapi
from featurewatch.streams.topics import ALL
from tests.paths import ROOT

DOCUMENT: dict[str, Any] = orjson.loads(asyncapi())

PARSER = "@asyncapi/parser@3.6.6"
_VALIDATE = """
import { Parser } from "@asyncapi/parser";
import { readFileSync } from "node:fs";
const { document, diagnostics } = await new Parser().parse(readFileSync(process.argv[2], "utf8"));
const faults = diagnostics.filter((each) => each.severity < 2);
for (const each of faults) console.log(each.code, each.path.join("."), each.message);
process.exit(document && faults.length === 0 ? 0 : 1);
"""


def test_the_description_is_valid():
    """By the JSON Schema of AsyncAPI 3.0.0, of the package @asyncapi/specs 6.11.1 (Apache 2.0)."""
    packed = (ROOT / "tests" / "data" / "asyncapi-3.0.0.json.gz").read_bytes()
    validator = Draft7Validator(orjson.loads(gzip.decompress(packed)))
    assert [error.message for error in validator.iter_errors(DOCUMENT)] == []
    without_title = {**DOCUMENT, "info": {"version": "1"}}
    assert not validator.is_valid(without_title)


def test_every_topic_has_its_channel_and_a_valid_example():
    """With its cleanup policy; references lead to something, and examples are of the schemas."""
    assert [*DOCUMENT["channels"]] == [topic.short_name for topic in ALL]
    for topic in ALL:
        name = topic.short_name
        channel, message = DOCUMENT["channels"][name], DOCUMENT["components"]["messages"][name]
        assert channel["address"].format(prefix="featurewatch") == topic.name()
        configuration = channel["bindings"]["kafka"]["topicConfiguration"]
        assert configuration["cleanup.policy"] == ["compact" if topic.is_compacted else "delete"]
        (example,) = message["examples"]
        for part in ("headers", "payload"):
            schema = {**message[part], "components": DOCUMENT["components"]}
            Draft202012Validator(schema).validate(example[part])


@pytest.mark.nightly
@pytest.mark.network
def test_the_parser_of_asyncapi_accepts_the_description(tmp_path: Path):
    """The initiative's own, with its rules beyond the schema."""
    (tmp_path / "validate.mjs").write_text(_VALIDATE)
    (tmp_path / "asyncapi.json").write_bytes(asyncapi())
    install = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", PARSER]
    try:
        subprocess.run(install, cwd=tmp_path, check=True, capture_output=True, timeout=300)
    except FileNotFoundError:
        pytest.skip("npm is not installed")
    validate = ["node", "validate.mjs", "asyncapi.json"]
    done = subprocess.run(
        validate, cwd=tmp_path, check=False, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout) == (0, "")
