"""The runbooks: a page for each alert; tests/documents runs their commands."""

import re

import pytest

from featurewatch.integrations.notify.alert_labels import WATCHDOG
from featurewatch.integrations.prometheus.files import ALL_RULES
from scripts.generators.runbooks import DIRECTORY, INDEX, UNWRITTEN

ENDS = {rule.name: rule.ends for rule in ALL_RULES} | {
    WATCHDOG: "when the process ends, or cannot read the alerts any more"
}
NAMES = sorted(ENDS)
SECTIONS = ["What it means", "See more", "What to do", "When it resolves"]


def sections(name: str) -> dict[str, str]:
    """The texts of a runbook by their headings, each on one line."""
    text = (DIRECTORY / f"{name}.md").read_text()
    assert text.startswith(f"# {name}\n")
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    pairs = zip(parts[1::2], parts[2::2], strict=True)
    return {title: " ".join(body.split()) for title, body in pairs}


def test_each_alert_has_a_page_and_no_other_is_there() -> None:
    """Beside the index."""
    assert sorted(file.stem for file in DIRECTORY.glob("*.md") if file != INDEX) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_page_answers_four_questions(name: str) -> None:
    """The sections are there, none is empty, and its end is that of the registry."""
    texts = sections(name)
    assert list(texts) == SECTIONS
    unwritten = [part for part, text in texts.items() if len(text) <= 15 or UNWRITTEN in text]
    assert unwritten == [], f"write these parts of docs/runbooks/{name}.md"
    assert texts["When it resolves"] == f"It ends {ENDS[name]}."
