"""The version, wherever it is written: that of ``pyproject.toml``."""

import re
from typing import Final

from scripts.generators import ROOT, Texts
from scripts.releasing.checks import version_of

_VERSION: Final = r"[0-9]+\.[0-9]+\.[0-9]+(?:(?:a|b|rc)[0-9]+)?"
_PLACES: Final = {
    "deploy/compose/compose.yaml": (r"image: featurewatch:",),
    "deploy/helm/featurewatch/Chart.yaml": (r"^version: ", r'^appVersion: "'),
    "deploy/image/Containerfile": (r"/featurewatch:", r'image\.version="'),
    "deploy/kubernetes/spark-audit.yaml": (r"featurewatch-spark:",),
    "deploy/kubernetes/spark-pipeline.yaml": (r"featurewatch-spark:",),
    "deploy/kubernetes/spark.Dockerfile": (r"featurewatch-spark:",),
    "docs/how-to/install.md": (r"/featurewatch:", r"featurewatch-(?=[0-9.]+-py3)"),
    "docs/how-to/spark-cluster.md": (r"/featurewatch-spark:",),
}
"""By file, what is before the version: regular expressions."""


def versions() -> Texts:
    """Yields each file that has the version, with the current one.

    Raises:
        ValueError: A file does not have it where it should.
    """
    version = version_of((ROOT / "pyproject.toml").read_text())
    for name, places in _PLACES.items():
        text = (ROOT / name).read_text()
        for place in places:
            pattern = re.compile(f"({place}){_VERSION}", re.MULTILINE)
            text, count = pattern.subn(rf"\g<1>{version}", text)
            if not count:
                raise ValueError(f"{name} has no version after {place}")
        yield ROOT / name, text
