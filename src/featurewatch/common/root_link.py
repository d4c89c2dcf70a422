"""Makes room for other projects' packages where the repository's root is on Python's path.

The root has links to ``streams``, ``agents`` and ``tables``. Python would follow them, so that
``import tables`` found ours instead of PyTables.
"""

import importlib.util
import sys
from importlib.machinery import PathFinder
from pathlib import Path


def import_next(name: str, file: str) -> None:
    """Replaces the module ``name``, loaded from ``file`` by a link, by the next one on the path.

    Raises:
        ModuleNotFoundError: No other package of that name is installed.
    """
    root = Path(file).absolute().parents[1]
    elsewhere = [entry for entry in sys.path if Path(entry).absolute() != root]
    spec = PathFinder.find_spec(name, elsewhere)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(
            f"No module named {name!r}; import featurewatch.{name} for that of featurewatch",
            name=name,
        )
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
