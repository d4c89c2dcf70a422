"""The settings of topics that the controller reads for an election."""

from collections.abc import Iterable, Mapping
from typing import Final

from featurewatch.reference.zookeeper.machines.encoding import ZnodeDecodeError
from featurewatch.reference.zookeeper.machines.task_queue import Task
from featurewatch.reference.zookeeper.machines.topics.znodes import (
    decode_topic_config,
    topic_config_path,
)
from featurewatch.reference.zookeeper.machines.zookeeper import (
    GetData,
    GetDataResult,
    NoNode,
    OperationResult,
)

UNCLEAN_SETTING: Final = "unclean.leader.election.enable"


class TopicConfigs:
    """Reads topics' own settings; ``unclean_default`` is the controller's own setting."""

    def __init__(self, *, unclean_default: bool = False) -> None:
        self._unclean_default = unclean_default

    def unclean_elections(self, topics: Iterable[str]) -> Task[dict[str, bool | None]]:
        """Whether each topic may elect a replica outside the ISR; None: it cannot be read."""
        names = [*topics]
        if not names:
            return {}
        results = yield tuple(GetData(topic_config_path(topic)) for topic in names)
        return {
            topic: self._is_enabled(result) for topic, result in zip(names, results, strict=True)
        }

    def read(self, topics: Iterable[str]) -> Task[dict[str, Mapping[str, str] | None]]:
        """The topics' own settings; None: they cannot be read."""
        names = [*topics]
        results = yield tuple(GetData(topic_config_path(topic)) for topic in names)
        return {topic: _decoded(result) for topic, result in zip(names, results, strict=True)}

    def _is_enabled(self, result: OperationResult) -> bool | None:
        config = _decoded(result)
        if config is None:
            return None
        text = config.get(UNCLEAN_SETTING, str(self._unclean_default)).strip().lower()
        return {"true": True, "false": False}.get(text)


def _decoded(result: OperationResult) -> Mapping[str, str] | None:
    if isinstance(result, NoNode):
        return {}
    try:
        return decode_topic_config(result.data) if isinstance(result, GetDataResult) else None
    except ZnodeDecodeError:
        return None
