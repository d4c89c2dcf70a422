"""The texts and tables of ``kafka-features`` of a release (``FeatureCommand``); pure.

Its texts are Kafka's own, to the byte. Two tools are followed: that of 3.9, the last of its line,
and that of 4.3, also with the tables of 4.4. They differ in what they call an unknown release, and
in that 3.9 has neither ``--release-version`` nor the two lookup commands.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from featurewatch.cli.kafka_tools import java
from featurewatch.cli.kafka_tools.errors import KafkaToolError
from featurewatch.common.text import closest
from featurewatch.streams.types import METADATA_VERSION, FeatureLevel, FeatureName

if TYPE_CHECKING:
    from featurewatch.admin.features.metadata import FeatureMetadata
    from featurewatch.controller.kraft.releases import FeatureVersion, Release

_ORDER: Final = (
    "kraft.version",
    "transaction.version",
    "group.version",
    "eligible.leader.replicas.version",
    "share.version",
    "streams.version",
)
"""In which ``Feature.PRODUCTION_FEATURES`` goes through them; a newer one comes last."""

# Releases before KRaft that the tool of 3.9 knows by name, by how many -IV each has.
_BEFORE_KRAFT: Final = {
    0: ("0.8.0", "0.8.1", "0.8.2", "0.9.0"),
    1: ("0.10.2", "1.0", "1.1", "2.5", "2.6", "3.0"),
    2: ("0.10.0", "2.0", "2.2", "2.3", "2.4", "2.8"),
    3: ("0.10.1", "0.11.0", "2.1", "2.7"),
}
_LOWEST_SHORT, _HIGHEST_SHORT = -(2**15), 2**15 - 1

_DESCRIBED_3_9: Final = (
    "Feature: {}\tSupportedMinVersion: {}\tSupportedMaxVersion: {}\t"
    "FinalizedVersionLevel: {}\tEpoch: {}"
)
_DESCRIBED: Final = (
    "Feature: {:<40}  SupportedMinVersion: {:<15}  SupportedMaxVersion: {:<15}  "
    "FinalizedVersionLevel: {:<15}  Epoch: {}"
)
"""A line of ``describe``."""


class KafkaFeaturesTool:
    """The tool of a release; ``is_strict``: it takes nothing else than that tool."""

    def __init__(self, release: str, *, is_strict: bool = False) -> None:
        self._name = release
        self._is_strict = is_strict
        self._old = release == "3.9"

    @cached_property
    def _release(self) -> "Release":
        from featurewatch.controller.kraft.releases import release_of  # most uses do not need it

        return release_of(self._name)

    @property
    def deprecates_metadata(self) -> bool:
        """Whether ``--metadata`` prints a line that it is deprecated."""
        return not self._old

    def level_of(self, version: str) -> FeatureLevel:
        """The metadata.version of a release or of a level by name; -1 before KRaft.

        Raises:
            KafkaToolError: There is no level of that name.
        """
        parts = java.split(version, ".")
        count = 3 if self._old and version.startswith("0.") else 2
        key = ".".join(parts[:count]) if len(parts) > count else version
        level = self._versions().get(key)
        if level is None:
            raise KafkaToolError(self._unknown_version(version))  # which names all that there are
        return level

    def default_levels(self, level: FeatureLevel) -> list[tuple[FeatureName, FeatureLevel]]:
        """The other features' levels of a new cluster at this metadata.version."""
        defaults = self._release.defaults(level)
        return [(name, defaults[name]) for name in self._features()]

    def describe(self, metadata: "FeatureMetadata") -> Iterator[str]:
        """The output of ``describe``: a line for each supported feature."""
        epoch = "-" if metadata.epoch is None else metadata.epoch
        for name, bounds in sorted(metadata.supported.items()):
            levels = (*bounds, metadata.finalized.get(name, 0))
            texts = (self._level_text(name, level) for level in levels)
            line = _DESCRIBED_3_9 if self._old else _DESCRIBED
            yield line.format(name, *texts, epoch)

    def version_mapping(self, version: str | None) -> Iterator[str]:
        """The output of ``version-mapping``; raises `KafkaToolError`."""
        asked = version or self._release.levels[len(self._production()) - 1].name
        level = self.level_of(asked)
        yield f"{METADATA_VERSION}={level} ({asked})"
        for name, default in self.default_levels(level):
            yield f"{name}={default}"

    def dependencies(self, levels: Iterable[str]) -> Iterator[str]:
        """The output of ``feature-dependencies``; raises `KafkaToolError` at the first error."""
        for text in levels:
            name, level = parse_level(text)
            if name == METADATA_VERSION:
                metadata_level = self._release.metadata_level(level)
                if metadata_level is None:
                    raise KafkaToolError(f"Unknown {METADATA_VERSION} {level}")
                yield f"{name}={level} ({metadata_level.name}) has no dependencies."
                continue
            needs = self._version(name, level).dependencies
            yield f"{name}={level} requires:" if needs else f"{name}={level} has no dependencies."
            for needed, at_least in needs.items():
                shown = f" ({self._level_text(needed, at_least)})"
                yield f"    {needed}={at_least}{shown if needed == METADATA_VERSION else ''}"

    def named_level(self, text: str) -> tuple[FeatureName, FeatureLevel]:
        """``feature=level``, where metadata.version may have a release or a name for its level.

        The names are KIP-778's, which released Kafka has not; for anything else, and where the tool
        is strict, its own error is raised.
        """
        try:
            return parse_level(text)
        except KafkaToolError:
            name, _, version = text.partition("=")
            if name.strip(_TRIMMED) != METADATA_VERSION or self._is_strict:
                raise
            try:
                return METADATA_VERSION, self.level_of(version.strip(_TRIMMED))
            except KafkaToolError:
                pass
            raise

    def _level_text(self, feature: str, level: int) -> str:
        """How a level is shown: that of metadata.version by its name, if the release knows it."""
        if feature != METADATA_VERSION:
            return str(level)
        known = self._release.metadata_level(level)
        return f"UNKNOWN {level}" if known is None else known.name

    def _version(self, name: str, level: int) -> "FeatureVersion":
        versions = self._release.features.get(FeatureName(name))
        if versions is None:
            close = closest(name, [*self._release.features, METADATA_VERSION])
            raise KafkaToolError(f"Unknown feature: {name}", close=close)
        feature_version = next((version for version in versions if version.level == level), None)
        if feature_version is None:
            raise KafkaToolError(f"No feature:{name} with feature level {level}")
        return feature_version

    def _features(self) -> list[FeatureName]:
        features = self._release.features
        first = [FeatureName(name) for name in _ORDER if name in features]
        return first + sorted(set(features) - set(first))

    def _production(self) -> list[str]:
        return [level.name for level in self._release.levels if level.since is not None]

    def _versions(self) -> dict[str, FeatureLevel]:
        """Every name of a level, and every release for its last one in production."""
        levels: dict[str, FeatureLevel] = {}
        if self._old:
            for count, releases in _BEFORE_KRAFT.items():
                for release in releases:
                    names = [release, *(f"{release}-IV{number}" for number in range(count))]
                    levels |= dict.fromkeys(names, FeatureLevel(-1))
        for level in self._release.levels:
            levels[level.name] = level.level
        for level in self._release.levels:
            if level.since is not None:
                levels[level.release] = level.level
        return levels

    def _unknown_version(self, version: str) -> str:
        if not self._old:
            names = ", ".join(level.name for level in self._release.levels)
            return f"Unknown metadata.version '{version}'. Supported metadata.version are: {names}"
        names = ", ".join(
            level.name
            for level in self._release.levels
            if level.since is not None and level.level >= self._release.bootstrap
        )
        return f"Unsupported metadata.version {version}. Supported metadata.version are {names}"


_TRIMMED: Final = "".join(map(chr, range(33)))
"""The characters that Java's ``trim`` removes."""


def parse_level(text: str) -> tuple[FeatureName, FeatureLevel]:
    """``feature=level`` with a number; raises `KafkaToolError`."""
    name, equals, level = text.partition("=")
    cannot = f"Can't parse feature=level string {text}:"
    if not equals:
        raise KafkaToolError(f"{cannot} equals sign not found.")
    level = level.strip(_TRIMMED)
    sign, digits = (level[:1], level[1:]) if level[:1] in ("+", "-") else ("", level)
    if digits.isdecimal():
        digits = digits.lstrip("0") or "0"
    # Python's int refuses thousands of digits with another error.
    fits = digits.isdecimal() and len(digits) <= len(str(_HIGHEST_SHORT))
    if not (fits and _LOWEST_SHORT <= (number := int(sign + digits)) <= _HIGHEST_SHORT):
        raise KafkaToolError(f"{cannot} unable to parse {level} as a short.")
    return FeatureName(name.strip(_TRIMMED)), FeatureLevel(number)


@dataclass(frozen=True, slots=True)
class FeatureOutcome:
    """The result for a feature: the requested level, and the refusal if there is one."""

    feature: str
    level: int
    refusal: str | None = None


def outcome_lines(
    operation: str, outcomes: Iterable[FeatureOutcome], *, dry_run: bool, say: Callable[[str], None]
) -> None:
    """Prints a line for each feature with ``say``; ``operation`` is upgrade, downgrade, disable or
    delete.

    Raises:
        KafkaToolError: Some were refused; the text has the number.
    """
    ordered = sorted(outcomes, key=lambda outcome: outcome.feature)
    removes = operation in ("disable", "delete")
    past = f"{operation}d"
    for one in ordered:
        if one.refusal is None:
            to = "." if removes else f" to {one.level}."
            say(f"{one.feature} {'can be' if dry_run else 'was'} {past}{to}")
        else:
            to = "" if removes else f" to {one.level}"
            cannot = "Can not" if dry_run else "Could not"
            say(f"{cannot} {operation} {one.feature}{to}. {one.refusal}")
    failed = sum(one.refusal is not None for one in ordered)
    if failed:
        raise KafkaToolError(f"{failed} out of {len(ordered)} operation(s) failed.")
