"""The programs of Prometheus, Alertmanager and Helm, where this machine has them.

``make monitoring-tools`` fetches them into a directory of the checkout, and installs nothing. They
may also be in ``usr/bin`` of the directory that ``FEATUREWATCH_MONITORING_TOOLS`` names, or on the
PATH.
"""

import os
import shutil
from pathlib import Path

import pytest

from tests.paths import ROOT

_TEMPLATE = Path("/usr/share/prometheus/alertmanager/default.tmpl")
_MOUNT = (
    f'mount -t tmpfs tmpfs /usr/share && mkdir -p "{_TEMPLATE.parent}" && '
    f'cp "$1"/*.tmpl "{_TEMPLATE.parent}" && shift && exec "$@"'
)


def _directory() -> Path:
    """Where the packages are unpacked."""
    given = os.environ.get("FEATUREWATCH_MONITORING_TOOLS")
    return Path(given) if given else ROOT / ".cache" / "monitoring-tools"


def tool(name: str) -> str:
    """The path of a program; skips the test where it is missing."""
    found = shutil.which(name, path=str(_directory() / "usr" / "bin")) or shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not here: make monitoring-tools fetches it")
    return found


def alertmanager_templates() -> Path:
    """The directory of Alertmanager's own templates, of the package installed or unpacked."""
    unpacked = _directory().joinpath(*_TEMPLATE.parent.parts[1:])
    return unpacked.resolve() if unpacked.exists() else _TEMPLATE.parent


def alertmanager() -> list[str]:
    """The command that starts Debian's Alertmanager, which wants templates at a fixed path.

    Where the package is only unpacked, the process gets a file system of its own there, for which
    the tests must run as root; else the test is skipped.
    """
    program = tool("prometheus-alertmanager")
    if _TEMPLATE.exists():
        return [program]
    unpacked = alertmanager_templates()
    if os.geteuid() != 0 or shutil.which("unshare") is None or not unpacked.exists():
        pytest.skip(f"{_TEMPLATE} is not here: install prometheus-alertmanager, or run as root")
    return ["unshare", "--mount", "sh", "-c", _MOUNT, "sh", str(unpacked), program]
