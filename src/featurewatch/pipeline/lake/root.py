"""The root of a lake: a directory of this machine, or the URI of a store."""

from pathlib import Path
from typing import Final

from featurewatch.pipeline.errors import LakeError

_FORBIDDEN: Final = frozenset("%[]{}\\^|*?`") | {chr(code) for code in (*range(32), 127)}
"""`deltalake` takes a path for a URL, and Spark for a pattern or a name in SQL."""


def absolute_root(root: str) -> str:
    """Returns a lake's root as Spark and `deltalake` take it: a directory is absolute.

    Raises:
        LakeError: The directory's path has a character that no table's may have.
    """
    if "://" in root:
        return root
    path = str(Path(root).absolute())
    if forbidden := sorted(_FORBIDDEN.intersection(path)):
        raise LakeError(
            f"the lake {path!r} cannot be used: no table's path may have {forbidden[0]!r}; name "
            "another directory with --lake"
        )
    return path


def local_directory(root: str) -> Path | None:
    """Returns the directory of this machine that a root is (None: it is another kind of URI).

    Raises:
        LakeError: As of `absolute_root`.
    """
    if "://" not in root:
        return Path(absolute_root(root)) if root.strip() else None
    return Path(root.removeprefix("file://")) if root.startswith("file:///") else None
