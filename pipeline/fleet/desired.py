"""The levels that clusters shall have: a file for people, checked where it is read."""

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from featurewatch.controller.kraft import UnknownReleaseError, release_of, releases
from featurewatch.pipeline.errors import PipelineError
from featurewatch.streams import yaml_file
from featurewatch.streams.types import METADATA_VERSION, FeatureName

_ALIKE: Final = 0.8
"""How alike a name must be to one of Kafka's: all of these end in ``.version``."""


class DesiredError(PipelineError):
    """The file cannot be taken: the text names the field and what it must be."""


def _names(value: Any) -> Any:
    """A list, where one is given without brackets too."""
    return [value] if isinstance(value, str) else value


def _levels(value: Any) -> Any:
    """Levels as numbers, where some are given by the name of a release."""
    if not isinstance(value, Mapping):
        return value
    return {name: _level(str(name), given) for name, given in value.items()}


def _level(feature: str, given: Any) -> int:
    text = str(given).strip()
    if text.isdecimal():
        level = int(text)
        # Clusters may have features of their own; 0 of a misspelt one would hide what differs.
        if level == 0 and (close := _close(feature)):
            raise ValueError(_unknown(feature, close))
        return level
    try:
        release = release_of(text)
    except UnknownReleaseError as error:
        raise ValueError(
            f"{feature} {text!r} is neither a number nor the name of a release or of a level "
            f"({error})"
        ) from None
    if feature not in _features():
        raise ValueError(_unknown(feature, _close(feature)))
    named = [one.level for one in release.levels if one.name == text]
    if "IV" in text and not named:
        raise ValueError(f"Kafka {release.name} has no level {text}")
    level = named[0] if named else release.newest(METADATA_VERSION)
    if feature == METADATA_VERSION:
        return level
    return release.defaults(level).get(FeatureName(feature), 0)


@lru_cache(maxsize=1)
def _features() -> frozenset[str]:
    """The features that some release of Kafka has."""
    return frozenset(name for release in releases().values() for name in release.unstable)


def _close(feature: str) -> str:
    """The feature of Kafka that an unknown name was probably meant to be (empty: none)."""
    if feature in _features():
        return ""
    found = get_close_matches(feature.lower(), sorted(_features()), 1, _ALIKE)
    return found[0] if found else ""


def _unknown(feature: str, close: str) -> str:
    hint = f"did you mean {close}?" if close else "give its level as a number"
    return f"no release of Kafka has a feature {feature}: {hint}"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ClusterLabels(_Strict):
    """What is said of a cluster besides its id."""

    name: str = ""
    labels: dict[str, str] = Field(default_factory=dict)


class Environment(_Strict):
    """Clusters that shall have the same levels.

    ``clusters`` are ids, names, or patterns of either (``orders-*``); a cluster that has all
    ``labels`` belongs to it too. A level of 0 says that the feature shall not be finalized.
    """

    clusters: Annotated[list[str], BeforeValidator(_names)] = Field(default_factory=list)
    labels: dict[str, str] = Field(default_factory=dict)
    levels: Annotated[dict[str, Annotated[int, Field(ge=0, le=32767)]], BeforeValidator(_levels)]

    def holds(self, cluster: str, named: ClusterLabels) -> bool:
        """Whether a cluster belongs to it."""
        if self.labels and self.labels.items() <= named.labels.items():
            return True
        names = [name for name in (cluster, named.name) if name]
        return any(fnmatchcase(name, pattern) for name in names for pattern in self.clusters)


class DesiredLevels(_Strict):
    """Environments by name, and the clusters that have a name or labels by their id."""

    environments: dict[str, Environment] = Field(min_length=1)
    clusters: dict[str, ClusterLabels] = Field(default_factory=dict)

    def named(self, cluster: str) -> ClusterLabels:
        """What is said of a cluster."""
        return self.clusters.get(cluster, _NOTHING)

    def environment_of(self, cluster: str) -> str | None:
        """The environment that a cluster belongs to (None: to none).

        Raises:
            DesiredError: It belongs to more than one.
        """
        named = self.named(cluster)
        found = [name for name, each in self.environments.items() if each.holds(cluster, named)]
        if len(found) > 1:
            who, both = named.name or cluster, " and to ".join(found)
            raise DesiredError(f"cluster {who} belongs to {both}: a cluster has one environment")
        return found[0] if found else None

    def expected(self, known: Iterable[str]) -> dict[str, str]:
        """What the file names and the lake does not know, and the environment that names it."""
        present = set(known)
        names = {self.named(cluster).name for cluster in present} | present
        missing = {}
        for cluster in self.clusters.keys() - present:
            missing[cluster] = self.environment_of(cluster) or ""
        named = {self.named(cluster).name for cluster in missing} | missing.keys()
        for environment, each in self.environments.items():
            for pattern in each.clusters:
                if not any(fnmatchcase(name, pattern) for name in names | named if name):
                    missing[pattern] = environment
        return dict(sorted(missing.items()))


_NOTHING: Final = ClusterLabels()


def desired_of(content: str, file: str) -> DesiredLevels:
    """The levels that a file's text asks for; ``file`` is its name.

    Raises:
        DesiredError: It is no YAML, or not what it must be.
    """
    return _checked(lambda: yaml_file.parse(content, file), file)


def read_desired(file: Path) -> DesiredLevels:
    """The levels that a file asks for; raises `DesiredError`."""
    return _checked(lambda: yaml_file.read(file), str(file))


def _checked(loading: Callable[[], Any], file: str) -> DesiredLevels:
    try:
        loaded = loading()
    except yaml_file.YamlError as error:
        raise DesiredError(str(error)) from None
    if not isinstance(loaded, dict):
        raise DesiredError(f"{file} must have the section environments on its first level")
    try:
        return DesiredLevels.model_validate(loaded)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        if first["type"] == "extra_forbidden":
            raise DesiredError(f"{file}: there is no field {place}") from None
        text = first["msg"]
        if first["type"] == "value_error":
            text = text.removeprefix("Value error, ")
        else:
            text = text[:1].lower() + text[1:]
        raise DesiredError(f"{file}: {place} is wrong: {text}") from None
