"""Finds the lake, opens it for reading without a JVM, and names the package that is missing."""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from featurewatch.cli.errors import UsageError

if TYPE_CHECKING:
    from featurewatch.cli.config.settings import Settings
    from featurewatch.pipeline.lake.reader import LakeReader


def default_lake(settings: "Settings") -> str:
    """The directory of the lake that `pipeline run` fills if none is named."""
    return str(settings.worker.data_directory / "lake")


def open_reader(root: str) -> "LakeReader":
    """Opens a lake; without a name the default one."""
    require_package("deltalake")
    from featurewatch.pipeline.lake.reader import LakeReader

    if not root.strip():
        from featurewatch.cli.config.settings import load

        root = default_lake(load(None))
    return LakeReader(root)


def require_package(package: str) -> None:
    """Raises `UsageError` if a package is not installed."""
    if find_spec(package) is None:
        raise UsageError(f"this needs the package {package}: pip install 'featurewatch[pipeline]'")
