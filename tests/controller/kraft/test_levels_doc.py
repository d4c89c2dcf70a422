"""docs/levels.md matches the table of levels."""

import re
from pathlib import Path

from featurewatch.controller.kraft.releases import releases
from featurewatch.streams.types import FeatureName

DOCUMENT = (Path(__file__).resolve().parents[3] / "docs" / "levels.md").read_text()


def _cell(stable: tuple[int, int] | None, unstable: tuple[int, int] | None) -> str:
    text = f"{stable[0]}-{stable[1]}" if stable else "–"
    return text if stable == unstable or not unstable else f"{text} ({unstable[0]}-{unstable[1]})"


def test_the_ranges_of_every_release() -> None:
    """The table of ranges in the document has each release and each feature."""
    (heading,) = re.findall(r"^\| release \| (.+) \|$", DOCUMENT, re.MULTILINE)
    features = [FeatureName(name) for name in heading.split(" | ")]
    rows = re.findall(r"^\| (\d+\.\d+) \| (.+) \|$", DOCUMENT, re.MULTILINE)
    assert rows == [
        (
            release.name,
            " | ".join(_cell(release.supported.get(f), release.unstable.get(f)) for f in features),
        )
        for release in releases().values()
    ]
    assert set(features) == {name for release in releases().values() for name in release.unstable}
