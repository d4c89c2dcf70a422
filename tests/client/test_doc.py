"""The examples of ``docs/how-to/client.md`` and of the package's docstring, run on a real bus."""

import re
from pathlib import Path

import pytest

import featurewatch.client
from featurewatch.client import BusSettings, ClientError
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.streams.codec.outputs import encode_output, encode_state
from featurewatch.streams.topics import FEATURE_CHANGES, STATE
from tests.client.bus import ClientBus
from tests.client.published import CLUSTER, FEATURE, change, snapshot
from tests.paths import ROOT
from tests.python_examples import run_example

PAGE = (ROOT / "docs" / "how-to" / "client.md").read_text()
EXAMPLES = {
    name: (source, shown)
    for name, source, shown in re.findall(
        r"<!-- run: (\w+) -->\n```python\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL
    )
}


@pytest.fixture(scope="module")
def settings(bus: Cluster) -> BusSettings:
    """A cluster at revision 5, with the levels that the page shows."""
    topics = ClientBus(bus.bootstrap_servers)
    levels = {FEATURE: 30, "transaction.version": 1}
    topics.put(STATE, encode_state(snapshot(5, levels)))
    topics.put(FEATURE_CHANGES, encode_output(change(5, after=30, before=21)))
    return topics.settings


@pytest.mark.stack
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_prints_what_the_page_shows(
    settings: BusSettings,
    name: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As it is written, with the names of a bus and of a cluster."""
    monkeypatch.chdir(tmp_path)
    source, shown = EXAMPLES[name]
    run_example(source, {"BUS": settings, "CLUSTER": CLUSTER})
    assert capsys.readouterr().out == shown


def test_the_page_has_its_examples_and_every_problem():
    """Each block of Python is run, and each class of `featurewatch.client` that names a problem is
    on the page."""
    assert len(EXAMPLES) == PAGE.count("```python") == 3
    problems = {
        name
        for name in featurewatch.client.__all__
        if isinstance(cls := getattr(featurewatch.client, name), type)
        and issubclass(cls, ClientError)
        and cls is not ClientError
    }
    assert {name for name in problems if f"`{name}`" not in PAGE} == set()
