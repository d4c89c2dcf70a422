"""The clusters that a command for one or many of them changes: by flags, or of a configuration."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from featurewatch.admin.features.client import FeatureAdmin
from featurewatch.cli.command_line import Exit
from featurewatch.cli.commands.features.common.options import FeaturesTarget
from featurewatch.cli.config.settings import ClusterSection, load
from featurewatch.cli.config.source_settings import node_logins
from featurewatch.cli.errors import ExitCode, UsageError
from featurewatch.cli.output.rendering import called
from featurewatch.cli.output.terminal import print_error
from featurewatch.cli.runtime.cluster_id import find_cluster_id

_SEARCH_S: Final = 5.0
_RETRY_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class NamedCluster:
    """A cluster with its id, its name in the configuration, and how it is reached."""

    id: str
    name: str
    section: ClusterSection

    def __str__(self) -> str:
        return called(self.id, self.name)

    @property
    def address_option(self) -> str:
        """The option that names it, for suggested commands."""
        if self.section.servers:
            return f"--bootstrap-server {self.section.servers}"
        return f"--bootstrap-controller {self.section.controllers}"


def sections_of(
    target: FeaturesTarget, config: Path | None, only: tuple[str, ...]
) -> list[ClusterSection]:
    """The clusters by flags, else those of the configuration; raises `UsageError`."""
    if target.servers or target.controllers:
        if only:
            raise UsageError("--cluster chooses from the clusters of --config: leave addresses out")
        given: dict[str, Any] = {
            "servers": target.servers,
            "controllers": target.controllers,
            "command_config": target.command_config,
        }
        flags = {name: value for name, value in given.items() if value}
        return load(None, clusters=[flags]).clusters
    sections = load(config).clusters
    if not sections:
        raise UsageError(
            "no cluster is named: pass --bootstrap-server, --bootstrap-controller, or --config "
            "with a file that has clusters"
        )
    for name in only:
        if not any(name in (section.name, section.cluster_id) for section in sections):
            raise UsageError(f"the configuration has no cluster {name}")
    chosen = [item for item in sections if not only or {item.name, item.cluster_id} & {*only}]
    for section in chosen:
        if not (section.servers or section.controllers):
            raise UsageError(
                f"the cluster {section.name or section.provisional_id} has neither servers nor "
                "controllers in the configuration: its levels cannot be changed"
            )
    return chosen


async def learn_cluster(section: ClusterSection) -> NamedCluster:
    """The cluster with the id that its nodes report, or that the configuration has.

    Raises:
        Exit: No node reports it (1).
    """
    logins = node_logins(section)
    deadline = asyncio.get_running_loop().time() + _SEARCH_S
    while True:
        search = await find_cluster_id(section, logins)
        found = search.cluster or section.cluster_id
        if search.cluster and section.cluster_id not in ("", search.cluster):
            raise UsageError(
                f"the configuration has the id {section.cluster_id} for "
                f"{section.name or section.servers or section.controllers}, whose nodes report "
                f"{search.cluster}"
            )
        if found:
            return NamedCluster(found, section.name, section)
        if asyncio.get_running_loop().time() >= deadline:
            where = section.name or section.provisional_id
            print_error(f"{where} cannot be read, so nothing was sent: {search.reason}")
            raise Exit(ExitCode.FAILED)
        await asyncio.sleep(_RETRY_S)


def connect(target: FeaturesTarget, cluster: NamedCluster) -> FeatureAdmin:
    """A client of the cluster, through its brokers if it names any."""
    section = cluster.section
    if section.servers:
        return FeatureAdmin.connect(
            section.servers, config=section.command_config, timeout_s=target.timeout_s
        )
    return FeatureAdmin.connect(
        controllers=section.controllers,
        config=section.controllers_config or section.command_config,
        timeout_s=target.timeout_s,
    )
