"""The site of the documents: its links out of ``docs``."""

from types import SimpleNamespace

import pytest

from scripts import docs_site

PAGE = SimpleNamespace(file=SimpleNamespace(src_uri="how-to/page.md"))
TEXT = "See [rules](../reference/alerts.md#rules), [the code](../../src/a.py#L3) and [site](https://a.org)."


@pytest.mark.parametrize(
    ("source", "code"),
    [
        (
            "https://code.example.org/featurewatch/",
            "[the code](https://code.example.org/featurewatch/src/a.py#L3)",
        ),
        (None, "the code"),
    ],
)
def test_a_link_to_code_leads_to_the_repository(source: str | None, code: str) -> None:
    """Where the repository has no address, its text is left; other links stay as they are."""
    text = docs_site.on_page_markdown(TEXT, page=PAGE, config=SimpleNamespace(repo_url=source))
    assert text == TEXT.replace("[the code](../../src/a.py#L3)", code)


def test_the_repository_is_that_of_the_project() -> None:
    """An address that nobody has is not declared."""
    config = docs_site.on_config(SimpleNamespace())
    assert ".example" not in (config.repo_url or "")
