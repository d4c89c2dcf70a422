"""``releases_learn_s``: ``featurewatch releases learn`` from the jars of an installed Kafka.

A whole process, Java included, that learns the newest release of the package as if the package did
not have it. The baseline is Kafka's own tool that reads the same levels, without a cluster:
``kafka-features version-mapping``.
"""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from featurewatch.kafka.releases import package_files
from featurewatch.kafka.releases.directory import VARIABLE
from featurewatch.stack.java.jars import Cache, Jars, default_cache, newest_tools, tool_command
from tests.bench.turns import medians
from tests.learned_releases import libs_of
from tests.paths import ROOT

_HIDDEN: Final = ROOT / "tests/cli/releases/hidden.py"
_ROUNDS: Final = 5


def run() -> Iterator[dict[str, Any]]:
    """The median seconds of both."""
    newest = package_files()[-1]
    cache = Cache(default_cache())
    tool = newest_tools()
    cache.class_path(tool, Jars.TOOLS)
    env = shutil.which("env") or "env"
    with tempfile.TemporaryDirectory(prefix="featurewatch-") as name:
        directory = Path(name)
        libs = libs_of(cache, newest.content["kafka"], directory / "libs")
        ours = [env, f"{VARIABLE}={directory / 'learned'}", sys.executable, str(_HIDDEN)]
        ours += [newest.release, "releases", "learn", "--libs", str(libs)]
        theirs = tool_command(
            tool,
            "org.apache.kafka.tools.FeatureCommand",
            *("--bootstrap-server", "localhost:9", "version-mapping"),
        )
        theirs.insert(1, "-Dorg.slf4j.simpleLogger.defaultLogLevel=off")
        took = medians({"ours": ours, "theirs": theirs}, rounds=_ROUNDS)
        if not (directory / "learned" / f"{newest.release}.json").exists():
            raise RuntimeError("nothing was learned")
        yield {
            "measure": "releases_learn_s",
            "value": round(took["ours"], 2),
            "baseline": round(took["theirs"], 2),
            "ratio": round(took["ours"] / took["theirs"], 2),
            "unit": "s",
            "rounds": _ROUNDS,
        }
