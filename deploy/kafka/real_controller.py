"""A real controller of a release, with light nodes: it stands in for a cluster's controller.

    with RealController("4.3.0", directory, Setting(node_id=1, level="3.7-IV4")) as real:
        real.register_broker(7, {"metadata.version": (7, 30)})
        said = real.update([("metadata.version", 30, 1)])

Its answers are Kafka's own. It is one process whatever the cluster has: the only voter.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from kio.schema.errors import ErrorCode
from kio.schema.update_features.v1.response import UpdateFeaturesResponse

from featurewatch.deploy.errors import RefusedError, StackError
from featurewatch.deploy.java.jars import Cache, parse_release
from featurewatch.deploy.kafka.cluster import Cluster
from featurewatch.deploy.kafka.specs import ClusterSpec, NodeSpec, Roles
from featurewatch.deploy.process.polling import attempts
from featurewatch.deploy.process.ports import LOOPBACK
from featurewatch.deploy.wire import requests
from featurewatch.deploy.wire.connection import BlockingConnection
from featurewatch.deploy.wire.light_nodes import LightBroker, LightNodes
from featurewatch.deploy.wire.requests import Ranges

OLDEST: Final = (3, 9)
"""Light nodes speak as brokers of 3.9 and newer do."""

_ANSWER_S: Final = 60.0
_LOG_S: Final = 5.0
_REASON: Final = r"\] {}: event failed with .*? message: (.*)"


@dataclass(frozen=True, slots=True)
class ControllerSetup:
    """How the controller is formatted and configured.

    ``level`` is the name of a metadata.version; ``dynamic`` gives it a quorum of dynamic voters,
    and so kraft.version 1; ``unstable`` lets it support what is not in production. ``session_ms``:
    after so long without a heartbeat a broker is fenced.
    """

    node_id: int
    level: str
    dynamic: bool = False
    unstable: bool = False
    session_ms: int = 4000
    cluster_id: str | None = None


@dataclass(frozen=True, slots=True)
class ApiResult:
    """A controller's answer as a client gets it: code 0 agrees.

    ``features`` are the answers for each, of an ``UpdateFeatures`` request.
    """

    code: int
    text: str = ""
    features: Mapping[str, tuple[int, str]] = field(default_factory=dict)


class RealController:
    """Starts with the block and is gone after it, its directory too."""

    def __init__(
        self, release: str, directory: Path, setting: ControllerSetup, *, cache: Cache | None = None
    ) -> None:
        """Describes it.

        Raises:
            StackError: if the release is older than 3.9, or no release.
        """
        if parse_release(release)[:2] < OLDEST:
            raise StackError(f"Kafka {release} is too old for light nodes; choose 3.9.0 or newer")
        self._setting = setting
        properties = {
            "broker.session.timeout.ms": str(setting.session_ms),
            "broker.heartbeat.interval.ms": str(setting.session_ms // 4),
        }
        if setting.unstable:
            properties["unstable.feature.versions.enable"] = "true"
        self._cluster = Cluster(
            ClusterSpec(
                [NodeSpec(setting.node_id, release, Roles.CONTROLLER)],
                setting.level,
                properties,
                dynamic_voters=setting.dynamic,
            ),
            directory,
            cache=cache,
            temporary=True,
            cluster_id=setting.cluster_id,
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
        """Asks for levels: feature, level, upgrade type (1 upgrade, 2 safe, 3 unsafe downgrade).

        Raises:
            WireError: if it does not answer.
        """
        host, _, port = self.address.rpartition(":")
        with BlockingConnection(host or LOOPBACK, int(port), _ANSWER_S) as connection:
            answer = connection.request(requests.update_features(updates), UpdateFeaturesResponse)
        return ApiResult(
            _code(answer.error_code),
            answer.error_message or "",
            {
                one.feature: (_code(one.error_code), one.error_message or "")
                for one in answer.results
            },
        )

    def register_broker(self, broker_id: int, ranges: Ranges) -> ApiResult:
        """A new process registers, and stays alive if it may.

        The response has no text for a refusal: it is taken from the controller's log, and empty if
        it is not found there.
        """
        begin = self._log.stat().st_size
        refused = self._nodes.register([LightBroker(broker_id, ranges)])
        if not refused:
            return ApiResult(0)
        return ApiResult(refused[0].code, _reason(self._log, begin, "registerBroker"))

    def register_controller(self, controller_id: int, ranges: Ranges) -> ApiResult:
        """A controller registers."""
        return _said(lambda: self._nodes.register_controller(controller_id, ranges))

    def lose(self, broker_ids: Iterable[int]) -> None:
        """Brokers send nothing any more: their sessions end."""
        self._nodes.forget(broker_ids)

    def unregister(self, broker_id: int) -> ApiResult:
        """Removes a broker's registration; up to 3.9 the text is in the controller's log alone."""
        begin = self._log.stat().st_size
        said = _said(lambda: self._nodes.unregister([broker_id]))
        if said.code == 0 or said.text:
            return said
        return replace(said, text=_reason(self._log, begin, "unregisterBroker"))

    def __enter__(self) -> Self:
        with ExitStack() as starting:
            starting.enter_context(self._cluster)
            light = LightNodes(self.address, self.cluster_id)
            self._light = starting.enter_context(light)
            starting.enter_context(light.kept_alive(self._setting.session_ms / 8000))
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
        return self._cluster.node(self._setting.node_id).log

    @property
    def _nodes(self) -> LightNodes:
        if self._light is None:
            raise StackError("the controller does not run; use it within its block")
        return self._light


def _said(ask: Callable[[], None]) -> ApiResult:
    try:
        ask()
    except RefusedError as error:
        return ApiResult(error.code, error.message)
    return ApiResult(0)


def _code(error_code: Any) -> int:
    return int(ErrorCode(error_code).value)


def _reason(log: Path, begin: int, event: str) -> str:
    """Why an event failed, by what was logged last after ``begin``, a size in bytes."""
    wanted = re.compile(_REASON.format(event))
    for _ in attempts(_LOG_S):
        with log.open("rb") as file:
            file.seek(begin)
            found = wanted.findall(file.read().decode(errors="replace"))
        if found:
            return str(found[-1]).strip()
    return ""
