"""The bugs of the rows about feature levels (F and M), for `tests.mutants`.

A mutant is one exact replacement, of a text that is in its file once. Add the ones that nobody
noticed: a row is shown when a test fails for a product that does otherwise. The file is long, since
it is a list.
"""

from typing import Final

from tests.mutants.mutant import Mutant

_MACHINES: Final = "reference/machines"
_CONTROLLER: Final = f"{_MACHINES}/controller/controller.py"
_PENDING: Final = f"{_MACHINES}/controller/pending.py"
_DIALECT: Final = f"{_MACHINES}/dialect.py"
_UPDATES: Final = f"{_MACHINES}/features/updates.py"
_DRAFTS: Final = f"{_MACHINES}/features/drafts.py"
_BROKER: Final = f"{_MACHINES}/broker.py"
_CLIENT: Final = f"{_MACHINES}/client.py"
_COMPATIBILITY: Final = f"{_MACHINES}/compatibility.py"
_KIP_778: Final = "controller/kraft/kip_778.py"
_KRAFT: Final = "controller/kraft/updates.py"
_ANSWERS: Final = "tables/fold/api_versions.py"
_NODE: Final = "streams/apiversions/node_features.py"
_DIVERGENCE: Final = "controller/readiness/divergence.py"
_FEATURES: Final = "cli/commands/features"

FEATURE_MUTANTS: Final = (
    # KIP-584: the reference cluster
    Mutant(
        "F-46",
        "pushes the levels after the response",
        _CONTROLLER,
        "        if (pushed := self._push(live_ids)) is None:\n",
        "        self._pending.answer(pending, response)\n"
        "        if (pushed := self._push(live_ids)) is None:\n",
    ),
    Mutant(
        "F-46",
        "pushes to one broker only",
        _CONTROLLER,
        "        for broker_id in broker_ids:\n",
        "        for broker_id in broker_ids[:1]:\n",
    ),
    Mutant(
        "F-92",
        "responds before the brokers have confirmed",
        f"{_MACHINES}/controller/deliveries.py",
        "            if not delivery.unconfirmed:\n",
        "            if True:\n",
    ),
    Mutant(
        "F-92",
        "a confirmation of older levels counts",
        f"{_MACHINES}/controller/deliveries.py",
        "            if delivery.message.epoch <= epoch:\n",
        "            if True:\n",
    ),
    Mutant(
        "F-92",
        "what is lost is not sent again",
        f"{_MACHINES}/controller/deliveries.py",
        "            self._emit(SendUpdateMetadata(broker_id, message))\n",
        "            pass\n",
    ),
    Mutant(
        "F-74",
        "reports the last failing item",
        _UPDATES,
        "    first = failed[0]\n",
        "    first = failed[-1]\n",
    ),
    Mutant(
        "F-74",
        "the later draft reports one item",
        _UPDATES,
        "for item in failed)\n",
        "for item in failed[:1])\n",
    ),
    Mutant(
        "F-20",
        "a request never times out",
        _PENDING,
        "            if now_ms >= pending.deadline_ms:\n",
        "            if False:\n",
    ),
    Mutant(
        "F-20",
        "a request times out a millisecond late",
        _PENDING,
        "            if now_ms >= pending.deadline_ms:\n",
        "            if now_ms > pending.deadline_ms:\n",
    ),
    Mutant(
        "F-32",
        "a write that changes no level is skipped",
        _UPDATES,
        "changed = not is_dry_run and (writes_always or levels != context.levels)",
        "changed = not is_dry_run and levels != context.levels",
    ),
    Mutant(
        "F-04",
        "ranges of the later draft begin at 0",
        _DIALECT,
        "        return self.lowest_level <= supported.minimum <= supported.maximum\n",
        "        return 0 <= supported.minimum <= supported.maximum\n",
    ),
    Mutant(
        "F-04",
        "a reversed range is valid",
        _DIALECT,
        "        return self.lowest_level <= supported.minimum <= supported.maximum\n",
        "        return self.lowest_level <= supported.minimum\n",
    ),
    Mutant(
        "F-04",
        "a negative minimum is valid",
        "streams/types.py",
        "        return 0 <= self.minimum <= self.maximum\n",
        "        return self.minimum <= self.maximum\n",
    ),
    Mutant(
        "F-04",
        "a broker with an invalid range starts",
        _BROKER,
        "        if invalid := self._invalid_ranges():\n",
        "        if (invalid := self._invalid_ranges()) and False:\n",
    ),
    Mutant(
        "F-03",
        "level 0 of the early draft needs no range",
        _COMPATIBILITY,
        "    if level == dialect.lowest_level == 0:\n",
        "    if level == -1:\n",
    ),
    Mutant(
        "F-23",
        "the third type deletes nothing",
        _DRAFTS,
        "    if kind == EarlyUpdateType.DELETE:\n",
        "    if kind == -1:\n",
    ),
    Mutant(
        "F-25",
        "a deletion needs no permission",
        _DRAFTS,
        "        if not allow:\n",
        "        if False:\n",
    ),
    Mutant(
        "F-36",
        "a lower level needs no permission",
        _DRAFTS,
        "    if existing is not None and level < existing and not allow:\n",
        "    if existing is not None and level < existing and False:\n",
    ),
    Mutant(
        "F-33",
        "no broker is checked",
        _DRAFTS,
        "    incompatible = context.incompatible_brokers(name, level)\n",
        "    incompatible = context.incompatible_brokers(name, level)[:0]\n",
    ),
    Mutant(
        "F-29",
        "the later draft queues",
        _CONTROLLER,
        "                self._processing and not self._dialect.queues\n",
        "                self._processing and False\n",
    ),
    Mutant(
        "F-30",
        "the valid items of a failed request are applied",
        _UPDATES,
        "    is_atomic = not context.dialect.per_item or (\n",
        "    is_atomic = (\n",
    ),
    Mutant(
        "F-51",
        "deletion forgets the last name",
        _DRAFTS,
        "for name in dict.fromkeys(request.names)]\n",
        "for name in dict.fromkeys(request.names[:1])]\n",
    ),
    Mutant(
        "F-62",
        "a broker registers before it reads",
        _BROKER,
        "        yield from self._refresh()\n        path = encoding.broker_path",
        "        path = encoding.broker_path",
    ),
    Mutant(
        "F-63",
        "an excluded broker exits with 0",
        _BROKER,
        "        self._emit(ExitProcess(1, reason))\n",
        "        self._emit(ExitProcess(0, reason))\n",
    ),
    Mutant(
        "F-64",
        "a watch that fires leads to no check",
        _BROKER,
        "                task = self._refresh() if path == self._dialect.path else None\n",
        "                task = None\n",
    ),
    Mutant(
        "F-65",
        "sent levels are adopted without a check",
        _BROKER,
        "        if incompatible:\n",
        "        if incompatible and czxid != self.cached.czxid:\n",
    ),
    Mutant(
        "F-56",
        "a broker responds without its epoch",
        _BROKER,
        "dict(self.cached.levels), self.cached.epoch)\n",
        "dict(self.cached.levels), -1)\n",
    ),
    Mutant(
        "F-66",
        "a broker is asked to fetch",
        "reference/wire/api_keys.py",
        "_COMMON: dict[int, Versions] = {METADATA",
        "_COMMON: dict[int, Versions] = {1: (0, 1), METADATA",
    ),
    Mutant(
        "F-69",
        "an excluded broker reads twice before it exits",
        _BROKER,
        "                task = self._refresh() if path == self._dialect.path else None\n",
        "                self._tasks.add(self._refresh())\n"
        "                task = self._refresh() if path == self._dialect.path else None\n",
    ),
    Mutant(
        "F-90",
        "a response has a protocol version",
        _BROKER,
        "dict(self.cached.levels), self.cached.epoch)\n",
        "{**self.cached.levels, 'inter.broker.protocol.version': 27}, self.cached.epoch)\n",
    ),
    Mutant(
        "F-58",
        "a client adopts any epoch",
        _CLIENT,
        "        if response.epoch > self.epoch:\n",
        "        if response.epoch != self.epoch:\n",
    ),
    Mutant(
        "F-59",
        "two epochs behind are tolerated",
        _CLIENT,
        "TOLERATED_EPOCHS: Final = 1\n",
        "TOLERATED_EPOCHS: Final = 2\n",
    ),
    Mutant(
        "F-61",
        "a client asks again and again",
        _CLIENT,
        "        return self.refresh_ms is not None and now_ms",
        "        return self.refresh_ms is None or now_ms",
    ),
    Mutant(
        "F-16",
        "the first levels are the minima",
        f"{_MACHINES}/features/store.py",
        "{name: high for name, (_, high) in",
        "{name: low for name, (low, _) in",
    ),
    # The command lines of KIP-584
    Mutant(
        "F-80",
        "only the first force-downgrade is taken",
        f"{_FEATURES}/update.py",
        "        *_updates(feature_force_downgrade or (), allow_downgrade=True),\n",
        "        *_updates((feature_force_downgrade or ())[:1], allow_downgrade=True),\n",
    ),
    Mutant(
        "F-85",
        "any reply that begins with y is a yes",
        f"{_FEATURES}/common/confirmation.py",
        '    return answer.strip().lower() in ("y", "yes")\n',
        '    return answer.strip().lower().startswith("y")\n',
    ),
    Mutant(
        "F-85",
        "an empty reply is a yes",
        f"{_FEATURES}/common/confirmation.py",
        '    return answer.strip().lower() in ("y", "yes")\n',
        '    return answer.strip().lower() in ("", "y", "yes")\n',
    ),
    Mutant(
        "F-87",
        "enable-latest asks any broker",
        f"{_FEATURES}/common/latest.py",
        "    async with admin:\n        return await admin.describe(controller=True)\n",
        "    async with admin:\n        return await admin.describe()\n",
    ),
    Mutant(
        "M-03",
        "the default timeout is 30 s",
        "admin/update_request.py",
        "    timeout_s: float = 60.0,\n",
        "    timeout_s: float = 30.0,\n",
    ),
    Mutant(
        "M-22",
        "names of levels are refused",
        "cli/kafka_tool.py",
        "            if name.strip(_TRIMMED) != METADATA_VERSION or self._is_strict:\n",
        "            if True:\n",
    ),
    Mutant(
        "M-22",
        "names serve for any feature",
        "cli/kafka_tool.py",
        "            if name.strip(_TRIMMED) != METADATA_VERSION or self._is_strict:\n",
        "            if False:\n",
    ),
    Mutant(
        "M-22 as released",
        "the tool of a release takes names",
        "cli/kafka_tool.py",
        "            if name.strip(_TRIMMED) != METADATA_VERSION or self._is_strict:\n",
        "            if name.strip(_TRIMMED) != METADATA_VERSION:\n",
    ),
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
        "    if release.minimum == 1:\n        return release.minimum\n",
        "    if release.minimum == 1:\n        return FeatureLevel(4)\n",
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
        "M-10 as released",
        "the level is the minimum",
        _NODE,
        "            finalized[FeatureName(level.name)] = FeatureLevel(high)\n",
        "            finalized[FeatureName(level.name)] = FeatureLevel(low)\n",
    ),
    Mutant(
        "M-31",
        "a roll is complete while a node is behind",
        "controller/rolls/tracker.py",
        "        if any(_is_behind(key.capabilities, roll) for key in",
        "        if False and any(_is_behind(key.capabilities, roll) for key in",
    ),
    Mutant(
        "M-32",
        "the levels that were lowered before are forgotten",
        "controller/rolls/tracker.py",
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
    Mutant(
        "M-48",
        "what was negotiated first counts for ever",
        "streams/net/connection.py",
        "        self.api_versions = MappingProxyType(\n",
        "        self.api_versions = getattr(self, 'api_versions', None) or MappingProxyType(\n",
    ),
    Mutant(
        "M-50",
        "a closed connection is used again",
        "streams/apiversions/connections.py",
        "        if connection is None or not connection.closed:\n",
        "        if True:\n",
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
        "M-47",
        "a broker that unregisters is kept",
        "tables/fold/records.py",
        '    replay.nodes[_broker_key(data, "brokerId")] = None\n',
        '    _broker_key(data, "brokerId")\n',
    ),
    Mutant(
        "M-58",
        "a snapshot keeps nodes that it has not",
        "tables/fold/log.py",
        "        nodes=resync.nodes,\n        log=log,\n",
        "        nodes=image.nodes,\n        log=log,\n",
    ),
    Mutant(
        "M-61",
        "a snapshot is an offset further than it is",
        "tables/fold/log.py",
        "LogProvenance(event.end_offset - 1, event.leader_epoch, event.append_ms)\n",
        "LogProvenance(event.end_offset, event.leader_epoch, event.append_ms)\n",
    ),
    Mutant(
        "M-62",
        "a snapshot's registration is always fenced",
        "tables/fold/records.py",
        '            fenced=_flag(data, "fenced"),\n',
        "            fenced=True,\n",
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
        "        return Verdict.NO if capabilities.complete else Verdict.UNKNOWN\n",
        "        return Verdict.YES\n",
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
        '_EARLY: Final = _Form(FeaturesForm.EARLY_DRAFT, "version", lowest=0)\n',
        '_EARLY: Final = _Form(FeaturesForm.EARLY_DRAFT, "version_level", lowest=0)\n',
    ),
)
