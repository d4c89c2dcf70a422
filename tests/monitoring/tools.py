"""The programs of Prometheus, Alertmanager and Helm, where this machine has them.

Debian's packages need no installation: ``apt-get download prometheus prometheus-alertmanager``,
then ``dpkg -x`` for each into a directory that ``FEATUREWATCH_MONITORING_TOOLS`` names. Helm comes
from its own packages, or with Go: ``go install helm.sh/helm/v3/cmd/helm@latest``. It may lie in
``usr/bin`` of that directory, or on the PATH.
"""

import os
import shutil
from pathlib import Path

import pytest


def tools_directory() -> Path | None:
    """Where the packages are unpacked."""
    given = os.environ.get("FEATUREWATCH_MONITORING_TOOLS")
    return Path(given) if given else None


def tool(name: str) -> str:
    """The path of a program; skips the test where it is missing."""
    directory = tools_directory()
    unpacked = None if directory is None else shutil.which(name, path=str(directory / "usr/bin"))
    found = unpacked or shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not here: see tests/monitoring/tools.py for how to get it")
    return found


_TEMPLATE = Path("/usr/share/prometheus/alertmanager/default.tmpl")
_MOUNT = (
    f'mount -t tmpfs tmpfs /usr/share && mkdir -p "{_TEMPLATE.parent}" && '
    f'cp "$1"/*.tmpl "{_TEMPLATE.parent}" && shift && exec "$@"'
)


def alertmanager() -> list[str]:
    """The command that starts Debian's Alertmanager, which wants templates at a fixed path.

    Where the package is only unpacked, the process gets a file system of its own there, for which
    the tests must run as root; else the test is skipped.
    """
    program = tool("prometheus-alertmanager")
    if _TEMPLATE.exists():
        return [program]
    template = (tools_directory() or Path("/")).joinpath(*_TEMPLATE.parts[1:])
    if os.geteuid() != 0 or shutil.which("unshare") is None or not template.exists():
        pytest.skip(f"{_TEMPLATE} is not here: install prometheus-alertmanager, or run as root")
    return ["unshare", "--mount", "sh", "-c", _MOUNT, "sh", str(template.resolve().parent), program]
