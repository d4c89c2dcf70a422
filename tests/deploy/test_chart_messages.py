"""What helm answers to values that do not make sense; skipped where helm is missing."""

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from scripts.generators.chart import CHART
from tests.deploy.chart import VALUES, helm, template


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["config.bus.bootstrap_servers="], "config.bus.bootstrap_servers is empty"),
        (["config.clusters=null"], "config.clusters is empty"),
        (["web.enabled=true"], "the page would have no login"),
        (["notify.enabled=true"], "there is no target"),
        (["worker.replicas=0"], "'/worker/replicas': minimum: got 0, want 1"),
        (["web.replica=2"], "'/web': additional properties 'replica' not allowed"),
        (["config.worker.stores=x"], "'/config/worker': additional properties 'stores'"),
    ],
)
def test_helm_refuses(options: Sequence[str], message: str) -> None:
    """One line says which value is wrong, and nothing is rendered."""
    done = template(VALUES["minimal"], *(f"--set={option}" for option in options))
    assert done.returncode != 0
    assert done.stdout == ""
    assert message in done.stderr


def test_the_notes_name_what_comes_next(tmp_path: Path) -> None:
    """After an installation helm prints the commands that look at it, of what is enabled only.

    Helm shows notes only to a cluster, so a template of a copy of the chart holds them here.
    """
    chart = tmp_path / "featurewatch"
    shutil.copytree(CHART, chart)
    notes = (chart / "templates/NOTES.txt").read_text()
    (chart / "templates/_notes.tpl").write_text(f'{{{{ define "notes" }}}}{notes}{{{{ end }}}}')
    (chart / "templates/notes.yaml").write_text('kind: {{ include "notes" . | quote }}\n')
    texts = {}
    for name in ("minimal", "everything"):
        options = ("--kube-version", "1.37.0", "--show-only", "templates/notes.yaml")
        done = helm("template", "release", chart, "--values", VALUES[name], *options)
        assert done.returncode == 0, done.stderr
        texts[name] = yaml.safe_load(done.stdout)["kind"]
    assert "follows 1 Kafka cluster and writes to kafka:9092" in texts["minimal"]
    assert "follows 2 Kafka clusters" in texts["everything"]
    assert "release-featurewatch-worker-0 -- featurewatch state" in texts["minimal"]
    assert "There is no page" in texts["minimal"]
    assert "service/release-features-web 9780:8080" in texts["everything"]
    assert "Nothing is scraped yet" in texts["minimal"]
    assert "Nothing is scraped yet" not in texts["everything"]
