"""The desired levels of clusters: a file that people write, validated when it is read."""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from featurewatch.common import yaml_file
from featurewatch.controller.kraft import UnknownReleaseError, release_of
from featurewatch.controller.kraft.releases import all_features, intended_feature
from featurewatch.pipeline.errors import PipelineError
from featurewatch.streams.types import METADATA_VERSION, FeatureName


class DesiredError(PipelineError):
    """The file is invalid; the text names the field and what it must be."""


def _names(value: Any) -> Any:
    """Wraps a single name in a list."""
    return [value] if isinstance(value, str) else value


def _levels(value: Any) -> Any:
    """Levels as numbers; some may be given as the name of a release or of a level."""
    if not isinstance(value, Mapping):
        return value
    return {name: _level(str(name), level) for name, level in value.items()}


def _level(feature: str, level_or_name: Any) -> int:
    text = str(level_or_name).strip()
    if text.isdecimal():
        level = int(text)
        # Clusters may have features that no release has; a level of 0 for a misspelled name would
        # hide drift.
        if level == 0 and (close := intended_feature(feature)):
            raise ValueError(_unknown(feature, close))
        return level
    try:
        release = release_of(text)
    except UnknownReleaseError as error:
        raise ValueError(
            f"{feature} {text!r} is neither a number nor the name of a release or of a level "
            f"({error})"
        ) from None
    if feature not in all_features():
        raise ValueError(_unknown(feature, intended_feature(feature)))
    matching = [level.level for level in release.levels if level.name == text]
    if "IV" in text and not matching:
        raise ValueError(f"Kafka {release.name} has no level {text}")
    level = matching[0] if matching else release.newest(METADATA_VERSION)
    if feature == METADATA_VERSION:
        return level
    return release.defaults(level).get(FeatureName(feature), 0)


def _unknown(feature: str, close: str) -> str:
    hint = f"did you mean {close}?" if close else "give its level as a number"
    return f"no release of Kafka has a feature {feature}: {hint}"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ClusterLabels(_Strict):
    """The name and labels of a cluster."""

    name: str = ""
    labels: dict[str, str] = Field(default_factory=dict)


class Environment(_Strict):
    """Clusters that should have the same levels.

    ``clusters`` are ids, names, or patterns of either (``orders-*``); a cluster that has all
    ``labels`` is a member too. A level of 0 means that the feature should not be finalized, or be
    finalized at 0.
    """

    clusters: Annotated[list[str], BeforeValidator(_names)] = Field(default_factory=list)
    labels: dict[str, str] = Field(default_factory=dict)
    levels: Annotated[dict[str, Annotated[int, Field(ge=0, le=32767)]], BeforeValidator(_levels)]

    def includes(self, cluster: str, cluster_labels: ClusterLabels) -> bool:
        """Whether a cluster is a member."""
        if self.labels and self.labels.items() <= cluster_labels.labels.items():
            return True
        names = [name for name in (cluster, cluster_labels.name) if name]
        return any(fnmatchcase(name, pattern) for name in names for pattern in self.clusters)


FORMAT: Final = 1
"""The format of the file; a file without ``version`` has it."""


class DesiredLevels(_Strict):
    """The environments by name, and the labels of clusters by their id.

    In the file, ``levels`` without environments are those of every cluster.
    """

    environments: dict[str, Environment] = Field(min_length=1)
    clusters: dict[str, ClusterLabels] = Field(default_factory=dict)

    def labels_of(self, cluster: str) -> ClusterLabels:
        """Returns the name and labels of a cluster; empty ones if the file has none."""
        return self.clusters.get(cluster, _NO_LABELS)

    def environment_of(self, cluster: str, name: str = "") -> str | None:
        """Returns the environment of a cluster (None: it is in none).

        ``name`` is its name where the file has none.

        Raises:
            DesiredError: The cluster is in more than one.
        """
        labels = self.clusters.get(cluster) or ClusterLabels(name=name)
        names = [
            name
            for name, environment in self.environments.items()
            if environment.includes(cluster, labels)
        ]
        if len(names) > 1:
            label, all_names = labels.name or cluster, " and to ".join(names)
            raise DesiredError(
                f"cluster {label} belongs to {all_names}: a cluster has one environment"
            )
        return names[0] if names else None

    def expected(self, clusters: Iterable[str]) -> dict[str, str]:
        """Returns the clusters and patterns of the file that match no cluster of the lake, each
        with the environment that names it. ``clusters`` are the ids of the lake's clusters."""
        ids = set(clusters)
        names = {self.labels_of(cluster).name for cluster in ids} | ids
        missing = {}
        for cluster in self.clusters.keys() - ids:
            missing[cluster] = self.environment_of(cluster) or ""
        listed = {self.labels_of(cluster).name for cluster in missing} | missing.keys()
        for name, environment in self.environments.items():
            for pattern in environment.clusters:
                if not any(fnmatchcase(label, pattern) for label in names | listed if label):
                    missing[pattern] = name
        return dict(sorted(missing.items()))


EVERYWHERE: Final = "all clusters"
"""The environment of levels that the file has for every cluster."""

_NO_LABELS: Final = ClusterLabels()


def read_desired(file: Path) -> DesiredLevels:
    """Reads the desired levels from a file.

    Raises:
        DesiredError: The file cannot be read, is not YAML, or a field is invalid.
    """
    try:
        content = yaml_file.read(file)
    except yaml_file.YamlError as error:
        raise DesiredError(str(error)) from None
    if not isinstance(content, dict):
        raise DesiredError(f"{file} must have the section environments on its first level")
    version = str(content.pop("version", FORMAT)).strip()  # the file's scalars are texts
    if version != str(FORMAT):
        raise DesiredError(
            f"{file} has the format {version[:20]}, and this version of featurewatch reads {FORMAT}"
        )
    if "levels" in content and "environments" not in content:
        everywhere = {"clusters": ["*"], "levels": content.pop("levels")}
        content["environments"] = {EVERYWHERE: everywhere}
    try:
        return DesiredLevels.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        if first["type"] == "extra_forbidden":
            raise DesiredError(f"{file}: there is no field {field}") from None
        message = first["msg"]
        if first["type"] == "value_error":
            message = message.removeprefix("Value error, ")
        else:
            message = message[:1].lower() + message[1:]
        raise DesiredError(f"{file}: {field} is wrong: {message}") from None
