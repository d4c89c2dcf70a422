"""More bugs of the rows about KIP-778 (M), for `tests.mutants`; a list."""

# ruff: noqa: E501 - lines of the product, as they are there

from typing import Final

from tests.mutants.mutant import Mutant

_KIP_778: Final = "controller/kraft/kip_778.py"
_KRAFT: Final = "controller/kraft/updates.py"
_REGISTRATION: Final = "controller/kraft/registration.py"
_RELEASES: Final = "controller/kraft/releases.py"
_UPDATES: Final = "admin/features/updates.py"
_REQUEST: Final = "admin/features/kip_778.py"
_RELEASED_REQUEST: Final = "admin/features/update_request.py"
_COMMANDS: Final = "cli/commands/features"
_LOG: Final = "tables/fold/log.py"
_RECORDS: Final = "tables/fold/records.py"
_FEATURES: Final = "tables/image/features.py"
_CONTROLLER: Final = "reference/kraft/machines/controller"
_SNAPSHOTS: Final = "reference/kraft/machines/metadata/snapshots.py"
_ENCODING: Final = "reference/zookeeper/machines/encoding.py"

KIP778_MUTANTS: Final = (
    # Requests and commands
    Mutant(
        "M-05 as released",
        "UpgradeType counts as KIP-778 does",
        _RELEASED_REQUEST,
        '    return {"upgrade_type": int(update.kind)}\n',
        '    return {"upgrade_type": int(update.kind) - 1}\n',
    ),
    Mutant(
        "M-08 as released",
        "ValidateOnly is not sent",
        _RELEASED_REQUEST,
        '{"validate_only": dry_run}',
        '{"validate_only": False}',
    ),
    Mutant(
        "M-09 as released",
        "a lossy downgrade has KIP-778's code",
        _KRAFT,
        '    text = f"Invalid metadata.version {update.level}. {reason}"\n'
        "    return rejected(Errors.INVALID_UPDATE_VERSION, text)\n",
        '    text = f"Invalid metadata.version {update.level}. {reason}"\n'
        "    return rejected(Errors.UNSAFE_FEATURE_DOWNGRADE, text)\n",
    ),
    Mutant(
        "M-07 as released",
        "any feature may be lowered by an upgrade but metadata.version",
        _KRAFT,
        "    if update.level < current and update.kind is UpgradeType.UPGRADE:\n",
        "    is_metadata = update.feature == METADATA_VERSION\n    if update.level < current and update.kind is UpgradeType.UPGRADE and is_metadata:\n",
    ),
    Mutant(
        "M-14",
        "the znode has a minimum",
        _ENCODING,
        '            inner = {name: {"max_version_level": level} for name, level in names}\n',
        "            inner = {\n"
        '                name: {"max_version_level": level, "min_version_level": level}\n'
        "                for name, level in names\n            }\n",
    ),
    Mutant(
        "M-14 as released",
        "the znode has schema 1",
        _ENCODING,
        '            return orjson.dumps({"version": 2, "status": 1, "features": inner})\n',
        '            return orjson.dumps({"version": 1, "status": 1, "features": inner})\n',
    ),
    Mutant(
        "M-17",
        "there is no disable",
        f"{_COMMANDS}/removals.py",
        "@command()\n@with_target\nasync def disable(\n",
        "@with_target\nasync def disable(\n",
    ),
    Mutant(
        "M-19",
        "disable has no dry run",
        f"{_COMMANDS}/removals.py",
        "    features: NameComma = None,\n    unsafe: Unsafe = False,\n"
        "    dry_run: DryRun = False,\n    yes: Yes = False,\n) -> None:\n"
        '    """Disable one',
        "    features: NameComma = None,\n    unsafe: Unsafe = False,\n"
        "    yes: Yes = False,\n    *,\n    dry_run: NameComma = None,\n) -> None:\n"
        '    """Disable one',
    ),
    Mutant(
        "M-18",
        "a command needs no server",
        f"{_COMMANDS}/common/options.py",
        '    "bootstrap_server": Server,\n    "bootstrap_controller"',
        '    "bootstrap_node": Server,\n    "bootstrap_controller"',
    ),
    Mutant(
        "M-20",
        "the finalized level is not shown",
        "cli/kafka_tools/features.py",
        "            levels = (*bounds, metadata.finalized.get(name, 0))\n",
        "            levels = (*bounds, 0)\n",
    ),
    Mutant(
        "M-21",
        "only the first --feature is taken",
        f"{_COMMANDS}/common/updates.py",
        "    for text in options.features or ():\n",
        "    for text in (options.features or ())[:1]:\n",
    ),
    Mutant(
        "M-21",
        "--metadata is ignored",
        f"{_COMMANDS}/common/updates.py",
        "        updates[METADATA_VERSION] = _update(METADATA_VERSION, tool.level_of(metadata), kind)\n",
        "        pass\n",
    ),
    Mutant(
        "M-23 as released",
        "--unsafe changes nothing",
        f"{_COMMANDS}/common/updates.py",
        "(DowngradeType.UNSAFE if unsafe else DowngradeType.SAFE)",
        "DowngradeType.SAFE",
    ),
    Mutant(
        "M-24",
        "disable asks for level 1",
        f"{_COMMANDS}/common/updates.py",
        "FeatureUpdate(FeatureName(name), FeatureLevel(0), downgrade_type(unsafe)))\n",
        "FeatureUpdate(FeatureName(name), FeatureLevel(1), downgrade_type(unsafe)))\n",
    ),
    Mutant(
        "M-24",
        "disable knows no --unsafe",
        f"{_COMMANDS}/common/updates.py",
        "FeatureUpdate(FeatureName(name), FeatureLevel(0), downgrade_type(unsafe)))\n",
        "FeatureUpdate(FeatureName(name), FeatureLevel(0), downgrade_type(False)))\n",
    ),
    Mutant(
        "M-28",
        "false gives an upgrade",
        _UPDATES,
        "        safe = allow_downgrade or reading is AllowDowngradeSemantics.WRITTEN\n",
        "        safe = allow_downgrade\n",
    ),
    Mutant(
        "M-28 as released",
        "false gives a safe downgrade",
        _UPDATES,
        "        safe = allow_downgrade or reading is AllowDowngradeSemantics.WRITTEN\n",
        "        safe = allow_downgrade or bool(reading)\n",
    ),
    Mutant(
        "M-29",
        "true for an unsafe downgrade",
        _UPDATES,
        "            return self.kind is UpgradeType.SAFE_DOWNGRADE\n",
        "            return self.kind is not UpgradeType.UPGRADE\n",
    ),
    Mutant(
        "M-29 as released",
        "false for an unsafe downgrade",
        _UPDATES,
        "        return self.kind is not UpgradeType.UPGRADE\n",
        "        return self.kind is UpgradeType.SAFE_DOWNGRADE\n",
    ),
    Mutant(
        "M-30",
        "a request is a dry run unless told otherwise",
        _REQUEST,
        "    dry_run: bool = False,\n",
        "    dry_run: bool = True,\n",
    ),
    Mutant(
        "M-30 as released",
        "a request is a dry run unless told otherwise",
        "admin/features/client.py",
        "        self, updates: Iterable[FeatureUpdate], *, dry_run: bool = False\n    ) -> UpdateResult:\n",
        "        self, updates: Iterable[FeatureUpdate], *, dry_run: bool = True\n    ) -> UpdateResult:\n",
    ),
    Mutant(
        "M-70",
        "version 0 takes a dry run",
        _REQUEST,
        "    if version == 0 and dry_run:\n",
        "    if False:\n",
    ),
    Mutant(
        "M-70 as released",
        "version 0 takes a dry run",
        _RELEASED_REQUEST,
        "    if version == 0 and dry_run:\n",
        "    if False:\n",
    ),
    # Storage
    Mutant(
        "M-25",
        "--metadata-version is no option",
        "cli/commands/storage/command.py",
        "        released + argument.removeprefix(draft)\n",
        "        argument\n",
    ),
    Mutant(
        "M-27 as released",
        "meta.properties counts before bootstrap.checkpoint",
        "streams/kraft/directory/formatted.py",
        "    levels = (_levels(quorum) or written) if initial is None else _levels(initial)\n",
        "    levels = written or (_levels(quorum) if initial is None else _levels(initial))\n",
    ),
    # Models of the controllers
    Mutant(
        "M-01",
        "a cluster in ZooKeeper mode needs a metadata.version",
        "monitor/readiness/reasons.py",
        "    return [(Verdict.YES, text)]\n\n\ndef _voter",
        "    return [(Verdict.UNKNOWN, text)]\n\n\ndef _voter",
    ),
    Mutant(
        "M-33",
        "a level opens no formats",
        _RELEASES,
        "                value = entry.gates[gate]\n",
        "                value = before\n",
    ),
    Mutant(
        "M-34",
        "new software supports what the old one did",
        _RELEASES,
        '        _ranges(entry["supported"]),\n        _ranges(entry["unstable"]),\n',
        "        SupportedRanges(\n            (FeatureName(name), (low, low))\n"
        '            for name, (low, _) in entry["supported"].items()\n        ),\n'
        '        _ranges(entry["unstable"]),\n',
    ),
    Mutant(
        "M-16",
        "a supported version has no minimum",
        _RELEASES,
        "        (FeatureName(feature), (low, high)) for feature, (low, high) in ranges.items()\n",
        "        (FeatureName(feature), (min(low, 0), high)) for feature, (low, high) in ranges.items()\n",
    ),
    Mutant(
        "M-36",
        "a level is raised by a restart",
        _KRAFT,
        "    if update.level > current and update.kind is not UpgradeType.UPGRADE:\n",
        '    if update.level > current:\n        return "Restart the nodes first."\n    if update.level > current and update.kind is not UpgradeType.UPGRADE:\n',
    ),
    Mutant(
        "M-38 as released",
        "a log without a level has level 4",
        "controller/kraft/release_rules.py",
        "ReleaseRules(release_of(file.release), source, **flags)\n",
        "ReleaseRules(\n            release_of(file.release),\n            source,\n"
        '            **{**flags, "default_level": flags["default_level"] and FeatureLevel(4)},\n'
        "        )\n",
    ),
    Mutant(
        "M-41",
        "a preview cluster begins at level 2",
        _KIP_778,
        "PREVIEW_LEVEL: Final = FeatureLevel(1)\n",
        "PREVIEW_LEVEL: Final = FeatureLevel(2)\n",
    ),
    Mutant(
        "M-42 as released",
        "a level above the range is no obstacle",
        _REGISTRATION,
        "    if not low <= level <= high:\n",
        "    if not low <= level:\n",
    ),
    Mutant(
        "M-42 as released",
        "a feature that is not offered is not checked",
        _REGISTRATION,
        "            _check_feature(finalized, (name, 0, 0))\n",
        "            pass\n",
    ),
    Mutant(
        "M-49",
        "controllers register below level 15",
        _REGISTRATION,
        "    if level < CONTROLLER_REGISTRATION:\n",
        "    if False:\n",
    ),
    Mutant(
        "M-53",
        "a level in the middle is overlooked",
        _RELEASES,
        "for level in range(low + 1, high + 1))\n",
        "for level in range(high, high + 1))\n",
    ),
    Mutant(
        "M-53 as released",
        "the floor is a level too high",
        _RELEASES,
        "        while lowest > self.minimum and self.lossless(lowest, lowest - 1):\n",
        "        while lowest > self.minimum + 1 and self.lossless(lowest, lowest - 1):\n",
    ),
    Mutant(
        "M-56",
        "a lossy downgrade is accepted",
        _KIP_778,
        "    if is_lossy and update.kind is not UpgradeType.UNSAFE_DOWNGRADE:\n",
        "    if False:\n",
    ),
    Mutant(
        "M-67",
        "two levels have one name",
        _RELEASES,
        '        FeatureLevel(entry["level"]),\n        entry["name"],\n        entry["release"],\n',
        '        FeatureLevel(entry["level"]),\n        entry["release"],\n        entry["release"],\n',
    ),
    Mutant(
        "M-68 as released",
        "4.0 takes a log without a level",
        _RELEASES,
        '        FeatureLevel(entry["minimum"]),\n        FeatureLevel(entry["bootstrap"])',
        '        FeatureLevel(1),\n        FeatureLevel(entry["bootstrap"])',
    ),
    Mutant(
        "M-59 as released",
        "a broker waits for the others to load a downgrade",
        _REGISTRATION,
        "    if not low <= level <= high:\n",
        "    if not low <= level < high:\n",
    ),
    # The log and the fold
    Mutant(
        "M-12",
        "the level record has no version 0",
        "streams/kraft/records/decoder.py",
        "    if version > schema.newest:\n",
        "    if version > schema.newest or (key, version) == (12, 0):\n",
    ),
    Mutant(
        "M-13",
        "what follows the last field is not looked at",
        "streams/kraft/records/compiler.py",
        '        with writer.block("if p != end:"):\n',
        '        with writer.block("if False:"):\n',
    ),
    Mutant(
        "M-15",
        "each level of a transaction is a revision",
        _FEATURES,
        "        return type(self)(levels, epoch, self.revision + 1, provenance)\n",
        "        changed = {*levels.items()} ^ {*self.levels.items()}\n"
        "        revision = self.revision + len({name for name, _ in changed})\n"
        "        return type(self)(levels, epoch, revision, provenance)\n",
    ),
    Mutant(
        "M-38",
        "a cluster without a level has level 1",
        _LOG,
        "    features = image.features.with_changes(replay.levels, event.last_offset, provenance)\n",
        "    first = {} if image.features.levels else {FeatureName('metadata.version'): FeatureLevel(1)}\n"
        "    levels_now = {**first, **replay.levels}\n"
        "    features = image.features.with_changes(levels_now, event.last_offset, provenance)\n",
    ),
    Mutant(
        "M-60",
        "an unknown record is an error",
        _LOG,
        "_APPLIED_TYPES: Final = frozenset({*REPLAYS, UNREADABLE})\n",
        "_APPLIED_TYPES: Final = frozenset({*REPLAYS, UNREADABLE, *map(str, range(0)), "
        '"NO_OP_RECORD", "TOPIC_RECORD", "PARTITION_RECORD", "CONFIG_RECORD"})\n',
    ),
    Mutant(
        "M-63",
        "a delta has the nodes that did not change",
        _LOG,
        "    return after, ClusterDelta(nodes=replay.nodes, levels=levels)\n",
        "    return after, ClusterDelta(nodes={**image.nodes.nodes, **replay.nodes}, levels=levels)\n",
    ),
    Mutant(
        "M-63",
        "each commit walks over all nodes",
        _LOG,
        "    levels = level_changes(image.features, features)\n    # Constructors",
        "    levels = level_changes(image.features, features)\n"
        "    for node in [*image.nodes.nodes.values()] * 50:\n"
        "        hash(node.key)\n"
        "    # Constructors",
    ),
    Mutant(
        "M-64",
        "levels that a snapshot has not are kept",
        _LOG,
        "    levels = Map({name: level for name, level in resync.levels.items() if level > 0})\n",
        "    known = {**image.features.levels, **resync.levels}\n"
        "    levels = Map({name: level for name, level in known.items() if level > 0})\n",
    ),
    Mutant(
        "M-65",
        "a snapshot is read with its log",
        _LOG,
        "        from_snapshot=True,\n",
        "        from_snapshot=False,\n",
    ),
    Mutant(
        "M-65",
        "a snapshot keeps levels that it has not",
        _LOG,
        "    levels = Map({name: level for name, level in resync.levels.items() if level > 0})\n",
        "    known = {**image.features.levels, **resync.levels}\n"
        "    levels = Map({name: level for name, level in known.items() if level > 0})\n",
    ),
    Mutant(
        "M-07",
        "any feature's downgrade may lose metadata",
        _KIP_778,
        "    is_lossy = is_metadata and not software.lossless(current, level)\n",
        "    is_lossy = level < current and not (is_metadata and software.lossless(current, level))\n",
    ),
    Mutant(
        "M-30",
        "an update is a dry run unless told otherwise",
        "admin/features/kip_778.py",
        '        **({} if version == 0 else {"dry_run": dry_run}),\n',
        '        **({} if version == 0 else {"dry_run": not dry_run}),\n',
    ),
    # The metadata controller of the reference
    Mutant(
        "M-42",
        "the registration of a broker is not checked",
        _REGISTRATION,
        "    for feature in request.features:\n        _check_feature(finalized, feature)\n",
        "",
    ),
    Mutant(
        "M-46",
        "an active controller ends without having resigned",
        f"{_CONTROLLER}/controller.py",
        "            self._out.append(Resign())\n",
        "            pass\n",
    ),
    Mutant(
        "M-54",
        "no snapshot has the lower level",
        f"{_CONTROLLER}/committed.py",
        "            self._snapshot(trims=False)\n            # Older",
        "            # Older",
    ),
    Mutant(
        "M-58",
        "a snapshot has records that its level does not know",
        _SNAPSHOTS,
        "    found = records_at(state_records(state), state.level or PREVIEW_LEVEL)\n",
        "    found = records_at(state_records(state), max(state.level or 0, 23))\n",
    ),
    Mutant(
        "M-61",
        "no snapshot is written before a change of the level",
        f"{_CONTROLLER}/committed.py",
        "            self._snapshot(trims=False)\n        apply_one",
        "            pass\n        apply_one",
    ),
    Mutant(
        "M-62",
        "the state is not written again at the new level",
        _SNAPSHOTS,
        "        return rewritten(after, at_level(after).records)\n",
        "        return after\n",
    ),
)
