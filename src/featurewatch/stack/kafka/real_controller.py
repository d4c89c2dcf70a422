"""Runs a release's real controller with light nodes, as a stand-in for a cluster's controller.

    with RealController("4.3.0", directory, ControllerSetup(node_id=1, level="3.7-IV4")) as real:
        real.register_broker(7, {"metadata.version": (7, 30)})
        result = real.update([("metadata.version", 30, 1)])

The responses are Kafka's own. The controller is one process, the only voter, whatever the size of
the cluster that it stands in for.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from featurewatch.stack.errors import RefusedError, StackError
from featurewatch.stack.java.jars import Cache, parse_release
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import ClusterSpec, NodeSpec, Roles
from featurewatch.stack.process.polling import attempts
from featurewatch.stack.process.ports import LOOPBACK
from featurewatch.stack.wire import requests
from featurewatch.stack.wire.connection import BlockingConnection
from featurewatch.stack.wire.light_nodes import LightBroker, LightNodes
from featurewatch.stack.wire.requests import Ranges

OLDEST: Final = (3, 9)
"""Light nodes send the requests of brokers of 3.9 and newer."""

_RESPONSE_S: Final = 60.0
_LOG_S: Final = 5.0
_REASON: Final = r"\] {}: event failed with .*? message: (.*)"


@dataclass(frozen=True, slots=True)
class ControllerSetup:
    """How the controller is formatted and configured.

    ``level`` is the name of a metadata.version. ``dynamic`` formats a quorum of dynamic voters,
    which is kraft.version 1. ``unstable`` enables levels that are not in production. A broker is
    fenced ``session_ms`` after its last heartbeat.
    """

    node_id: int
    level: str
    dynamic: bool = False
    unstable: bool = False
    session_ms: int = 4000
    cluster_id: str | None = None


@dataclass(frozen=True, slots=True)
class ApiResult:
    """A controller's response: its error code, 0 for success, and its text.

    ``features`` maps each feature of an UpdateFeatures response to its own code and text.
    """

    code: int
    text: str = ""
    features: Mapping[str, tuple[int, str]] = field(default_factory=dict)


class RealController:
    """A controller that runs inside its ``with`` block; its directory is removed after."""

    def __init__(
        self, release: str, directory: Path, setup: ControllerSetup, *, cache: Cache | None = None
    ) -> None:
        """Describes the controller and starts nothing.

        Raises:
            StackError: if ``release`` is older than 3.9, or not a release.
        """
        if parse_release(release)[:2] < OLDEST:
            raise StackError(f"Kafka {release} is too old for light nodes; choose 3.9.0 or newer")
        self._setup = setup
        properties = {
            "broker.session.timeout.ms": str(setup.session_ms),
            "broker.heartbeat.interval.ms": str(setup.session_ms // 4),
        }
        if setup.unstable:
            properties["unstable.feature.versions.enable"] = "true"
        self._cluster = Cluster(
            ClusterSpec(
                [NodeSpec(setup.node_id, release, Roles.CONTROLLER)],
                setup.level,
                properties,
                dynamic_voters=setup.dynamic,
            ),
            directory,
            cache=cache,
            temporary=True,
            cluster_id=setup.cluster_id,
        )
        self._stack = ExitStack()
        self._light: LightNodes | None = None

    @property
    def address(self) -> str:
        """``host:port`` of the controller listener."""
        return self._cluster.controllers

    @property
    def cluster_id(self) -> str:
        """The cluster's id."""
        return self._cluster.cluster_id

    def update(self, updates: Iterable[tuple[str, int, int]]) -> ApiResult:
        """Sends UpdateFeatures; an update is (feature, level, upgrade type).

        The types are Kafka's ``UpgradeType``: 1 upgrade, 2 safe and 3 unsafe downgrade.

        Raises:
            WireError: if the controller does not respond.
        """
        host, _, port = self.address.rpartition(":")
        with BlockingConnection(host or LOOPBACK, int(port), _RESPONSE_S) as connection:
            response = connection.request(requests.update_features(updates))
        return ApiResult(
            response.error_code,
            response.error_message or "",
            {
                result.feature: (result.error_code, result.error_message or "")
                for result in response.results
            },
        )

    def register_broker(self, broker_id: int, ranges: Ranges) -> ApiResult:
        """Registers a broker as a new process; if it succeeds, heartbeats keep it alive.

        The response carries no text, so the text of a rejection comes from the controller's log; it
        is empty if the log has none.
        """
        log_start = self._log.stat().st_size
        refusals = self._nodes.register([LightBroker(broker_id, ranges)])
        if not refusals:
            return ApiResult(0)
        return ApiResult(refusals[0].code, _reason(self._log, log_start, "registerBroker"))

    def register_controller(self, controller_id: int, ranges: Ranges) -> ApiResult:
        """Registers a controller."""
        return _result_of(lambda: self._nodes.register_controller(controller_id, ranges))

    def stop_brokers(self, broker_ids: Iterable[int]) -> None:
        """Stops the heartbeats of brokers, so that their sessions expire."""
        self._nodes.forget(broker_ids)

    def unregister_controller(self, controller_id: int) -> ApiResult:
        """Removes a controller's registration; needs 4.4."""
        return _result_of(lambda: self._nodes.unregister_controller(controller_id))

    def unregister(self, broker_id: int) -> ApiResult:
        """Removes a broker's registration; up to 3.9 the text comes from the controller's log."""
        log_start = self._log.stat().st_size
        result = _result_of(lambda: self._nodes.unregister([broker_id]))
        if result.code == 0 or result.text:
            return result
        return replace(result, text=_reason(self._log, log_start, "unregisterBroker"))

    def __enter__(self) -> Self:
        with ExitStack() as starting:
            starting.enter_context(self._cluster)
            light = LightNodes(self.address, self.cluster_id)
            self._light = starting.enter_context(light)
            starting.enter_context(light.kept_alive(self._setup.session_ms / 8000))
            self._stack = starting.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, traceback)

    @property
    def _log(self) -> Path:
        return self._cluster.node(self._setup.node_id).log

    @property
    def _nodes(self) -> LightNodes:
        if self._light is None:
            raise StackError("the controller does not run; use it within its block")
        return self._light


def _result_of(request: Callable[[], None]) -> ApiResult:
    try:
        request()
    except RefusedError as error:
        return ApiResult(error.code, error.message)
    return ApiResult(0)


def _reason(log: Path, log_start: int, event: str) -> str:
    """Why an event failed: the last reason in the log after byte ``log_start``, else empty."""
    pattern = re.compile(_REASON.format(event))
    for _ in attempts(_LOG_S):
        with log.open("rb") as file:
            file.seek(log_start)
            messages = pattern.findall(file.read().decode(errors="replace"))
        if messages:
            return str(messages[-1]).strip()
    return ""
