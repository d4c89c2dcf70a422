"""The tools for assistants: what requests they make, and how large answers are."""

import re
from typing import Any

import jsonschema_rs
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from featurewatch.controller.rehearsal.steps import parse
from featurewatch.integrations.mcp.bounded import bounded_text
from featurewatch.integrations.mcp.tools import (
    DEFAULT_ITEMS,
    MAX_ITEMS,
    TOOLS,
    ArgumentError,
    find_tool,
    input_schema,
    request_path,
    selected,
)
from featurewatch.web.openapi import document
from tests.strategies import json_values

REQUIRED = {"cluster": "c", "revision": 3, "from": 1, "to": 2, "step": ["stop:broker-1"]}


def path_of(name: str, **arguments: Any) -> str:
    """The request of a call."""
    tool = find_tool(name)
    assert tool is not None
    return request_path(tool, arguments)


def test_each_tool_reads_one_resource() -> None:
    """With its required arguments it makes a request that the API describes."""
    paths = document()["paths"]
    for tool in TOOLS:
        schema = input_schema(tool)
        jsonschema_rs.meta.validate(schema)
        arguments = {name: REQUIRED[name] for name in schema["required"]}
        jsonschema_rs.validate(schema, arguments)
        path = URL(request_path(tool, arguments)).path
        template = re.sub(r"/c(?=/|$)", "/{cluster}", path).replace("/3", "/{revision}")
        assert f"/{template}" in paths
    assert len({tool.name for tool in TOOLS}) == len(TOOLS)


def test_the_steps_of_the_description_can_be_parsed() -> None:
    """An assistant copies them."""
    tool = find_tool("rehearsal")
    assert tool is not None
    examples = [word.strip(",.") for word in tool.about.split() if ":" in word]
    assert len(examples) >= 5
    for example in examples:
        parse(example)


def test_pages_are_small() -> None:
    """Their length has another default and another maximum than the API's."""
    assert path_of("clusters") == f"api/v1/clusters?limit={DEFAULT_ITEMS}"
    assert (
        path_of("clusters", limit=MAX_ITEMS, q="a b") == f"api/v1/clusters?q=a+b&limit={MAX_ITEMS}"
    )
    with pytest.raises(ArgumentError, match="limit must be a number from 1 to 100"):
        path_of("clusters", limit=MAX_ITEMS + 1)


def test_steps_are_repeated() -> None:
    """In their order."""
    steps = ["stop:broker-1", "restart:broker-2@4.3"]
    path = path_of("rehearsal", cluster="a/b", step=steps)
    assert (
        path == "api/v1/clusters/a%2Fb/rehearsal?step=stop%3Abroker-1&step=restart%3Abroker-2%404.3"
    )


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("cluster", {}, "cluster needs the argument cluster"),
        ("cluster", {"cluster": ".."}, "cluster must be an id"),
        ("cluster", {"cluster": ""}, "must be a text of 1 to"),
        ("cluster", {"cluster": 7}, "must be a text of 1 to"),
        ("cluster", {"cluster": "c", "levels": "x"}, "levels is no argument of cluster"),
        ("revision", {"cluster": "c", "revision": True}, "revision must be a number"),
        ("revision", {"cluster": "c", "revision": -1}, "revision must be a number"),
        ("clusters", {"health": "fine"}, "health must be one of"),
        ("rehearsal", {"cluster": "c", "step": []}, "step must be a list of 1 to 20 texts"),
        ("rehearsal", {"cluster": "c", "step": "stop:1"}, "step must be a list of 1 to 20 texts"),
    ],
)
def test_wrong_arguments_are_named(name: str, arguments: dict[str, Any], message: str) -> None:
    """So that the assistant can correct them."""
    with pytest.raises(ArgumentError, match=message):
        path_of(name, **arguments)


@given(st.text(min_size=1, max_size=50))
def test_an_id_is_one_segment(cluster: str) -> None:
    """Whatever is in it, the request is for this resource."""
    if cluster in (".", ".."):
        return
    url = URL("http://page/" + path_of("cluster", cluster=cluster), encoded=True)
    assert url.raw_path.startswith("/api/v1/clusters/")
    assert url.raw_path.count("/") == 4
    assert url.raw_query_string == ""


def test_blockers_are_a_part_of_readiness() -> None:
    """Without the consequences of levels."""
    tool = find_tool("blockers")
    assert tool is not None
    content = {"cluster": "c", "blockers": [], "features": [1], "downgrade_path": None}
    assert selected(tool, content) == {"cluster": "c", "blockers": []}


def test_long_lists_are_cut_and_counted() -> None:
    """The first items stay, as deep as they are."""
    content = {"nodes": [{"id": number, "text": "x" * 50} for number in range(1_000)]}
    text = bounded_text(content, 5_000)
    nodes = orjson.loads(text)["nodes"]
    assert len(text) <= 5_000
    assert nodes[0] == content["nodes"][0]
    assert nodes[-1] == {"left_out": 1_000 - (len(nodes) - 1)}
    assert orjson.loads(bounded_text(content, 200_000)) == {
        "nodes": [*content["nodes"][:200], {"left_out": 800}]
    }


@given(json_values)
def test_an_answer_is_bounded_whatever_it_is(content: Any) -> None:
    """Also deep nesting and long texts."""
    for _ in range(30):
        content = [content, "y" * 5_000]
    assert len(bounded_text(content, 500)) <= 500
