"""The API's own description: it is valid, and the served API is as it says."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest

from featurewatch.controller.kraft.releases import releases
from featurewatch.streams import schemas
from featurewatch.web.openapi import ROOT, document
from featurewatch.web.server import PageServer
from featurewatch.web.settings import PageSettings
from featurewatch.web.worker_rows import WorkerRows
from tests.web.rolls import ROLLED, publish, rolling
from tests.web.samples import (
    NOW_MS,
    alert_of,
    change_of,
    operation_of,
    publish_history,
    read_model,
    state_of,
)


def test_the_description_is_valid() -> None:
    """By the validator of the OpenAPI 3.1 specification."""
    from openapi_spec_validator import validate

    validate(document())


def described() -> dict[str, Any]:
    """The description, with the cluster, the releases and the topics that there are: what follows
    from it then also finds something."""
    content = document()
    parameters = content["components"]["parameters"]
    for name, values in {
        "cluster": [ROLLED],
        "target": releases(),
        "newTarget": releases(),
        "upgradeTarget": releases(),
        "release": releases(),
        "topic": sorted(schemas.described()),
    }.items():
        parameters[name]["schema"] = {"type": "string", "enum": [*values]}
    for name in ("revision", "from", "to"):
        parameters[name]["schema"]["maximum"] = 30
    return content


def sample_fleet() -> PageServer:
    """A cluster in the middle of a roll, with its worker's rows, and others beside it."""
    names = [ROLLED, *(f"cluster-{number}" for number in range(5))]
    model = read_model([*map(state_of, names[1:]), *map(alert_of, names), *map(change_of, names)])
    old, new = (state_of(ROLLED, level=level, revision=level) for level in (20, 21))
    publish_history(model, old, new, operation_of(ROLLED))
    rows = WorkerRows()
    rows.end_reading()
    publish(rolling("4.0", "3.9", "3.9"), model, rows, NOW_MS)
    return PageServer(PageSettings(port=0), model, rows, lambda: NOW_MS, lambda: 0.0)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Where it is served, in a thread."""
    server, loop = sample_fleet(), asyncio.new_event_loop()
    started, ended = threading.Event(), asyncio.Event()

    async def serve() -> None:
        async with server.serving():
            started.set()
            await ended.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    assert started.wait(30)
    yield f"http://127.0.0.1:{server.port}"
    loop.call_soon_threadsafe(ended.set)
    thread.join(30)
    loop.close()


LABELS = [
    f"{method.upper()} {path}"
    for path, operations in document()["paths"].items()
    for method in operations
    if path != f"{ROOT}/events"  # it has no end
]
UNDESCRIBED = {"cursor", "step"}
"""Parameters of which no description can say which texts are right."""


# Not schemathesis' own `parametrize`: its items have one name, and xdist runs one of them. It is
# imported here, since that takes a second, and most processes that collect these tests run others.
@pytest.mark.parametrize("label", LABELS)
def test_the_api_is_as_it_says(label: str, address: str) -> None:
    """Whatever is asked, right or wrong: a response of a status, type and form as described."""
    import schemathesis
    from schemathesis.specs.openapi.checks import positive_data_acceptance

    method, path = label.split()
    operation = schemathesis.openapi.from_dict(described())[path][method]

    @hypothesis.settings(max_examples=20, derandomize=True, deadline=None, database=None)
    @hypothesis.given(case=operation.as_strategy())
    def check(case: Any) -> None:
        is_described = not UNDESCRIBED & {*(case.query or {})}
        excluded: list[Any] = [] if is_described else [positive_data_acceptance]
        case.call_and_validate(base_url=address, excluded_checks=excluded)

    check()
