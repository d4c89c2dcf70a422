"""The pictures of the page in the documents: they can be taken again, and are small."""

import re
from pathlib import Path

import pytest

from tests.paths import ROOT
from tests.web.chromium import CHROMIUM, NO_CHROMIUM, NO_PLAYWRIGHT
from tests.web.screenshots import IMAGES, MAX_BYTES, SCHEMES, VIEWS, take

NAMES = {f"{name}-{scheme}.png" for name in VIEWS for scheme in SCHEMES}
PNG = b"\x89PNG\r\n\x1a\n"


def test_each_picture_is_there_and_small() -> None:
    """In both schemes, and no other is."""
    pictures = {path.name: path for path in IMAGES.glob("page-*.png")}
    assert pictures.keys() == NAMES
    assert all(path.stat().st_size < MAX_BYTES for path in pictures.values())


@pytest.mark.parametrize("document", ["README.md", "docs/how-to/page.md"])
def test_documents_show_them_in_the_scheme_of_the_reader(document: str) -> None:
    """Each picture of a document has its dark form, and both exist."""
    text = (ROOT / document).read_text()
    shown = re.findall(r'<source media="\(prefers-color-scheme: dark\)" srcset="([^"]+)">', text)
    assert shown
    for dark in shown:
        light = dark.replace("-dark", "-light")
        assert f'src="{light}"' in text
        for path in (dark, light):
            assert ((ROOT / document).parent / path).is_file()


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason=NO_CHROMIUM)
async def test_they_can_be_taken_again(tmp_path: Path) -> None:
    """All of them, from what the page shows now."""
    pytest.importorskip("playwright", reason=NO_PLAYWRIGHT)
    paths = await take(tmp_path)
    assert {path.name for path in paths} == NAMES
    assert all(path.read_bytes().startswith(PNG) for path in paths)
