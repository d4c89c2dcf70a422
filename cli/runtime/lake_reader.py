"""Opens the lake for reading without a JVM, and names the package that is missing."""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from featurewatch.cli.errors import UsageError

if TYPE_CHECKING:
    from featurewatch.pipeline.lake.reader import LakeReader


def open_reader(root: str) -> "LakeReader":
    """Opens a lake; without a name the one that `pipeline run` fills."""
    require_package("deltalake")
    from featurewatch.pipeline.lake.reader import LakeReader

    if not root.strip():
        from featurewatch.cli.config.settings import load

        root = str(load(None).worker.data_directory / "lake")
    return LakeReader(root)


def require_package(package: str) -> None:
    """Raises `UsageError` if a package is not installed."""
    if find_spec(package) is None:
        raise UsageError(f"this needs the package {package}: pip install 'featurewatch[pipeline]'")
