"""The bugs of the rows about KRaft, about nodes and about sources, for `tests.mutants`; a list."""

from typing import Final

from tests.mutants.mutant import Mutant

_KIP_778: Final = "controller/kraft/kip_778.py"
_REQUEST: Final = "admin/features/kip_778.py"
_KRAFT: Final = "controller/kraft/updates.py"
_ANSWERS: Final = "tables/fold/api_versions.py"
_NODE: Final = "streams/apiversions/node_features.py"
_DIVERGENCE: Final = "monitor/readiness/divergence.py"

KRAFT_MUTANTS: Final = (
    # KIP-778 as written
    Mutant(
        "M-09",
        "an unsafe downgrade has the usual error",
        _KIP_778,
        "            Errors.UNSAFE_FEATURE_DOWNGRADE,\n",
        "            Errors.INVALID_UPDATE_VERSION,\n",
    ),
    Mutant(
        "M-57",
        "UNSAFE overrides nothing",
        _KIP_778,
        "    if is_lossy and update.kind is not UpgradeType.UNSAFE_DOWNGRADE:\n",
        "    if is_lossy:\n",
    ),
    Mutant(
        "M-45",
        "all voters must support a level",
        _KIP_778,
        "    if supporting > len(quorum) // 2:\n",
        "    if supporting == len(quorum):\n",
    ),
    Mutant(
        "M-45",
        "all voters but one must",
        _KIP_778,
        "    if supporting > len(quorum) // 2:\n",
        "    if supporting >= len(quorum) - 1:\n",
    ),
    Mutant(
        "M-45",
        "half of the voters suffices",
        _KIP_778,
        "    if supporting > len(quorum) // 2:\n",
        "    if supporting >= len(quorum) / 2:\n",
    ),
    Mutant(
        "M-06",
        "a downgrade to the same level is accepted",
        _KIP_778,
        "    return None if level < current else",
        "    return None if level <= current else",
    ),
    Mutant(
        "M-04",
        "only 0 deletes",
        _KIP_778,
        "FeatureLevelRecord(feature, FeatureLevel(max(0, update.level)))",
        "FeatureLevelRecord(feature, update.level)",
    ),
    Mutant(
        "M-08",
        "a dry run writes",
        _KIP_778,
        "        () if request.dry_run else tuple(records),\n",
        "        tuple(records),\n",
    ),
    Mutant(
        "M-05",
        "DowngradeType counts as released Kafka does",
        _REQUEST,
        "int(DowngradeType.of(update.kind))",
        "int(update.kind)",
    ),
    Mutant(
        "M-08",
        "DryRun is not sent",
        _REQUEST,
        '{"dry_run": dry_run}',
        "{}",
    ),
    Mutant(
        "M-23",
        "--unsafe changes nothing",
        "cli/commands/features/common/updates.py",
        "(DowngradeType.UNSAFE if unsafe else DowngradeType.SAFE)",
        "DowngradeType.SAFE",
    ),
    Mutant(
        "M-39",
        "levels of other features do not count",
        _KIP_778,
        "    if levels:\n        return None\n",
        "    if METADATA_VERSION in levels:\n        return None\n",
    ),
    Mutant(
        "M-40",
        "the directory of a preview cluster has no first level",
        "cli/commands/storage/info.py",
        "bool(meta.version) and self.formatted.levels is None",
        "False",
    ),
    Mutant(
        "M-39",
        "the first level is written over those of the log",
        _KIP_778,
        "    if levels:\n        return None\n",
        "",
    ),
    Mutant(
        "M-40",
        "a preview cluster begins at level 4",
        _KIP_778,
        "PREVIEW_LEVEL: Final = FeatureLevel(1)\n",
        "PREVIEW_LEVEL: Final = FeatureLevel(4)\n",
    ),
    Mutant(
        "M-68",
        "metadata.version can be deleted",
        _KIP_778,
        "    if is_metadata and level == 0:\n",
        "    if False:\n",
    ),
    Mutant(
        "M-27",
        "the level in meta.properties is not read",
        "streams/kraft/directory/formatted.py",
        "    written = None if meta.level is None else {METADATA_VERSION: meta.level}\n",
        "    written = None\n",
    ),
    # KIP-778 as released
    Mutant(
        "M-40 as released",
        "a log without a level has level 4",
        "controller/kraft/release_rules.py",
        "ReleaseRules(release_of(file.release), source, **flags)\n",
        "ReleaseRules(\n            release_of(file.release),\n            source,\n"
        '            **{**flags, "default_level": flags["default_level"] and FeatureLevel(4)},\n'
        "        )\n",
    ),
    Mutant(
        "M-06 as released",
        "a downgrade to the same level is refused",
        _KRAFT,
        "    if update.level > current and update.kind is not UpgradeType.UPGRADE:\n",
        "    if update.level >= current and update.kind is not UpgradeType.UPGRADE:\n",
    ),
    Mutant(
        "M-57 as released",
        "UNSAFE overrides",
        _KRAFT,
        "        if not release.lossless(self.finalized, update.level):\n",
        "        if not release.lossless(self.finalized, update.level) and (\n"
        "            update.kind is not UpgradeType.UNSAFE_DOWNGRADE\n        ):\n",
    ),
    Mutant(
        "M-52",
        "a lossy level in the middle is overlooked",
        "controller/kraft/releases.py",
        "for level in range(low + 1, high + 1))\n",
        "for level in range(high, high + 1))\n",
    ),
    Mutant(
        "M-45 as released",
        "controllers are not checked",
        "controller/kraft/support.py",
        "    if finalized < CONTROLLER_REGISTRATION:\n",
        "    if True:\n",
    ),
    Mutant(
        "M-59",
        "controllers count as loaded",
        _DIVERGENCE,
        "    if provenance.epoch < 0:\n",
        "    if provenance.epoch < 0 and key.role is Role.BROKER:\n",
    ),
    Mutant(
        "M-59",
        "fenced brokers count as loaded",
        _DIVERGENCE,
        "        verdict = has_applied_levels(image, key, now_ms)\n",
        "        verdict = has_applied_levels(image, key, now_ms)\n"
        "        verdict = Verdict.YES if image.nodes.nodes[key].fenced else verdict\n",
    ),
    Mutant(
        "M-11",
        "an epoch of 0 does not count in a response",
        _NODE,
        "    for level in response.finalized_features if epoch >= 0 else ():\n",
        "    for level in response.finalized_features if epoch > 0 else ():\n",
    ),
    Mutant(
        "M-11",
        "an epoch of 0 does not count in the fold",
        _ANSWERS,
        "    if event.epoch < 0:\n",
        "    if event.epoch <= 0:\n",
    ),
    Mutant(
        "M-10",
        "KIP-778's version 4 has a minimum",
        "reference/zookeeper/wire/responses.py",
        "_NO_MINIMUM_SINCE: Final = 4\n",
        "_NO_MINIMUM_SINCE: Final = 5\n",
    ),
    Mutant(
        "M-10",
        "KIP-778's version 3 has no minimum",
        "reference/zookeeper/wire/responses.py",
        "_NO_MINIMUM_SINCE: Final = 4\n",
        "_NO_MINIMUM_SINCE: Final = 3\n",
    ),
    Mutant(
        "M-10 as released",
        "the level is the minimum",
        _NODE,
        "            finalized[FeatureName(level.name)] = FeatureLevel(high)\n",
        "            finalized[FeatureName(level.name)] = FeatureLevel(low)\n",
    ),
    Mutant(
        "M-31",
        "a roll is complete while a node is behind",
        "monitor/rolls/tracker.py",
        "        if any(_is_behind(key.capabilities, roll) for key in",
        "        if False and any(_is_behind(key.capabilities, roll) for key in",
    ),
    Mutant(
        "M-32 as released",
        "the levels that were lowered before are forgotten",
        "monitor/rolls/tracker.py",
        "        levels = self._lowered if direction is Direction.DOWNGRADE else {}\n",
        "        levels: dict[FeatureName, tuple[FeatureLevel, FeatureLevel]] = {}\n",
    ),
    Mutant(
        "M-35",
        "new software uses its newest requests",
        "controller/kraft/releases.py",
        "            if entry.level <= level and gate in entry.gates:\n",
        "            if gate in entry.gates:\n",
    ),
    # The fold, and the sources
    Mutant(
        "F-40",
        "a level fences the nodes that it excludes",
        "tables/fold/log.py",
        "    nodes = image.nodes.with_changes(replay.nodes) if replay.nodes else image.nodes\n",
        "    nodes = image.nodes.with_changes(\n"
        "        replay.nodes or {key: node._replace(fenced=True) for key, node in "
        "image.nodes.nodes.items()}\n"
        "    )\n",
    ),
    Mutant(
        "M-37",
        "the second level waits for a restart",
        "tables/fold/log.py",
        "image.features.with_changes(replay.levels, event.last_offset, provenance)\n",
        "image.features.with_changes(\n"
        "        {} if image.features.levels else replay.levels, event.last_offset, provenance\n"
        "    )\n",
    ),
    Mutant(
        "F-03",
        "level 0 in the znode of the early draft is not finalized",
        "tables/fold/znode_features.py",
        "    lowest = content.form.lowest_level\n",
        "    lowest = 1\n",
    ),
    Mutant(
        "F-03",
        "a removal is a downgrade to level 0",
        "streams/outputs.py",
        "    if after is None:\n        return ChangeKind.REMOVED\n",
        "    if after is None:\n        return ChangeKind.DOWNGRADED\n",
    ),
    Mutant(
        "F-03",
        "a change to level 0 is read back as a removal",
        "streams/outputs.py",
        "        return None if self.kind is ChangeKind.REMOVED else self.after\n",
        "        return self.after or None\n",
    ),
    Mutant(
        "F-03",
        "a broker without the feature supports level 0",
        "controller/compatibility.py",
        "    if level == 0 and feature not in capabilities.ranges:\n",
        "    if level == -1:\n",
    ),
    Mutant(
        "F-03 as released",
        "level 0 of a record finalizes the feature",
        "tables/image/features.py",
        "            if level > 0:\n",
        "            if level >= 0:\n",
    ),
    Mutant(
        "M-65",
        "a snapshot keeps nodes that it has not",
        "tables/fold/log.py",
        "        nodes=resync.nodes,\n        log=log,\n",
        "        nodes=image.nodes,\n        log=log,\n",
    ),
    Mutant(
        "M-65",
        "a snapshot is an offset further than it is",
        "tables/fold/log.py",
        "LogProvenance(event.end_offset - 1, event.leader_epoch, event.append_ms)\n",
        "LogProvenance(event.end_offset, event.leader_epoch, event.append_ms)\n",
    ),
    Mutant(
        "F-12",
        "a lower version of a znode counts",
        "tables/fold/znode_features.py",
        "        if same_life and znode.version < last.version:\n",
        "        if False:\n",
    ),
    Mutant(
        "M-04 as released",
        "level 0 is kept",
        "tables/image/features.py",
        "            if level > 0:\n",
        "            if level >= 0:\n",
    ),
    Mutant(
        "F-34",
        "a missing feature is supported",
        "controller/compatibility.py",
        "            return Verdict.YES\n        return Verdict.NO if capabilities.complete else",
        "            return Verdict.YES\n        return Verdict.YES if capabilities.complete else",
    ),
    Mutant(
        "F-33",
        "the maximum is excluded",
        "streams/types.py",
        "        return self.minimum <= level <= self.maximum\n",
        "        return self.minimum <= level < self.maximum\n",
    ),
    Mutant(
        "F-07",
        "the early draft's levels are not read",
        "streams/zookeeper/decoding/features.py",
        '_EARLY: Final = _Form(FeaturesForm.EARLY_DRAFT, "version")\n',
        '_EARLY: Final = _Form(FeaturesForm.EARLY_DRAFT, "version_level")\n',
    ),
)
