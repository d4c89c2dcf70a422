"""More bugs of the rows about KIP-584 (F), for `tests.mutants`: the znodes, the wire; a list."""

# ruff: noqa: E501 - lines of the product, as they are there

from typing import Final

from tests.mutants.mutant import Mutant

_REFERENCE: Final = "reference/zookeeper"
_MACHINES: Final = f"{_REFERENCE}/machines"
_CONTROLLER: Final = f"{_MACHINES}/controller/controller.py"
_MEMBERSHIP: Final = f"{_MACHINES}/controller/membership.py"
_PENDING: Final = f"{_MACHINES}/controller/pending.py"
_DIALECT: Final = f"{_MACHINES}/dialect.py"
_ENCODING: Final = f"{_MACHINES}/encoding.py"
_UPDATES: Final = f"{_MACHINES}/features/updates.py"
_DRAFTS: Final = f"{_MACHINES}/features/drafts.py"
_RELEASED: Final = f"{_MACHINES}/features/released.py"
_STORE: Final = f"{_MACHINES}/features/store.py"
_BROKER: Final = f"{_MACHINES}/broker.py"
_CLIENT: Final = f"{_MACHINES}/client.py"
_WIRE: Final = f"{_REFERENCE}/wire"
_DECODING: Final = "streams/zookeeper/decoding/features.py"
_COMMANDS: Final = "cli/commands/features"
_DRAFT_COMMANDS: Final = f"{_COMMANDS}/common/drafts.py"
_DOCUMENTS: Final = f"{_COMMANDS}/common/documents.py"
_CHECK: Final = "controller/compatibility.py"
_ANSWERS: Final = "tables/fold/api_versions.py"

KIP584_MUTANTS: Final = (
    # Znodes
    Mutant(
        "F-01",
        "the timestamp of a broker is a number",
        _ENCODING,
        '        "timestamp": str(now_ms),\n        "endpoints"',
        '        "timestamp": now_ms,\n        "endpoints"',
    ),
    Mutant(
        "F-02",
        "the early draft has the later names of a range's ends",
        _DIALECT,
        '    range_keys=("minVersion", "maxVersion"),\n',
        '    range_keys=("min_version", "max_version"),\n',
    ),
    Mutant(
        "F-02 as released",
        "Kafka has the early draft's names of a range's ends",
        _DIALECT,
        '    lowest_minimum=0,\n    range_keys=("min_version", "max_version"),\n',
        '    lowest_minimum=0,\n    range_keys=("minVersion", "maxVersion"),\n',
    ),
    Mutant(
        "F-04 as released",
        "ranges of 3.9 begin at 1",
        _DIALECT,
        '    lowest_minimum=0,\n    range_keys=("min_version", "max_version"),\n',
        '    lowest_minimum=1,\n    range_keys=("min_version", "max_version"),\n',
    ),
    Mutant(
        "F-06",
        "the drafts have the released znode",
        _DIALECT,
        '    path="/features",\n    lowest_level=0,\n',
        '    path="/feature",\n    lowest_level=0,\n',
    ),
    Mutant(
        "F-06 as released",
        "released Kafka has the drafts' znode",
        _DIALECT,
        '    path="/feature",\n',
        '    path="/features",\n',
    ),
    Mutant(
        "F-08",
        "the znode has no epoch",
        _ENCODING,
        '            with_epoch = {"epoch": epoch} if dialect.pushes else {}\n',
        "            with_epoch: dict[str, int] = {}\n",
    ),
    Mutant(
        "F-08 as released",
        "the released znode has an epoch",
        _ENCODING,
        '            return orjson.dumps({"version": 2, "status": 1, "features": inner})\n',
        '            return orjson.dumps({"version": 2, "status": 1, "epoch": epoch, "features": inner})\n',
    ),
    Mutant(
        "F-09",
        "the later draft wraps its levels",
        _ENCODING,
        '            return orjson.dumps({"version": 0, "features": inner})\n',
        '            return orjson.dumps({"version": 0, "data": {"features": inner}})\n',
    ),
    Mutant(
        "F-09 as released",
        "schema 2 keeps the minimum",
        _ENCODING,
        '            inner = {name: {"max_version_level": level} for name, level in names}\n',
        '            inner = {\n                name: {"max_version_level": level, "min_version_level": level}\n'
        "                for name, level in names\n            }\n",
    ),
    Mutant(
        "F-10",
        "an empty key of the metadata is read",
        _DECODING,
        "        if not key:\n",
        "        if False:\n",
    ),
    Mutant(
        "F-10 as released",
        "other values than integers are read",
        _DECODING,
        '    2: _Form(FeaturesForm.RELEASED_2, "max_version_level", only_integers=True),\n',
        '    2: _Form(FeaturesForm.RELEASED_2, "max_version_level", only_integers=False),\n',
    ),
    Mutant(
        "F-11",
        "the epoch is one more than the znode's version",
        "tables/fold/znode_features.py",
        "    epoch = znode.version if content.enabled else -1\n",
        "    epoch = znode.version + 1 if content.enabled else -1\n",
    ),
    Mutant(
        "F-12 as released",
        "epochs of controllers and brokers compare",
        _ANSWERS,
        "        if provenance.role is Role.BROKER and event.role is Role.CONTROLLER:\n",
        "        if False:\n",
    ),
    # The cluster
    Mutant(
        "F-05",
        "a broker's ranges are not read",
        "streams/zookeeper/decoding/znodes.py",
        "        features=supported,\n",
        "        features={},\n",
    ),
    Mutant(
        "F-13",
        "a deposed controller writes the znode",
        _STORE,
        "                CheckVersion(encoding.CONTROLLER_EPOCH, fence),\n"
        "                SetData(self._dialect.path, data, before.version),\n",
        "                CheckVersion(self._dialect.path, before.version),\n"
        "                SetData(self._dialect.path, data, before.version),\n",
    ),
    Mutant(
        "F-14",
        "a broker does not watch the znode",
        _BROKER,
        "            result = yield from perform(GetData(path, watch=True))\n"
        "            match result:\n",
        "            result = yield from perform(GetData(path))\n            match result:\n",
    ),
    Mutant(
        "F-15",
        "the controller does not watch the brokers' znodes",
        _MEMBERSHIP,
        "            GetData(encoding.broker_path(broker_id), watch=True) for",
        "            GetData(encoding.broker_path(broker_id)) for",
    ),
    Mutant(
        "F-15",
        "the first content of a broker's znode counts",
        f"{_MACHINES}/controller/live_brokers.py",
        "        if self.brokers.get(broker_id) == broker:\n",
        "        if broker_id in self.brokers:\n",
    ),
    Mutant(
        "F-17",
        "a controller starts though the znode could not be written",
        _CONTROLLER,
        "            if result is not WriteResult.WRITTEN:\n                return\n",
        "",
    ),
    Mutant(
        "F-18",
        "a starting controller writes a new znode again",
        _STORE,
        "            if self._stat is not None and not self._needs_rewrite():\n",
        "            is_new = self._stat is not None and self._stat.version == 0\n"
        "            if self._stat is not None and not self._needs_rewrite() and not is_new:\n",
    ),
    Mutant(
        "F-18 as released",
        "a disabled znode stays disabled",
        _STORE,
        "not (znode.enabled and znode.form is self._dialect.form)\n",
        "not (znode.form is self._dialect.form)\n",
    ),
    Mutant(
        "F-19",
        "a standby says that an update is in progress",
        _CONTROLLER,
        "                self._emit(SendResponse(request_id, NOT_CONTROLLER))\n",
        "                self._emit(SendResponse(request_id, IN_PROGRESS))\n",
    ),
    Mutant(
        "F-19 as released",
        "another node has the code of KIP-4",
        f"{_MACHINES}/requests.py",
        "    NOT_CONTROLLER = 41\n",
        "    NOT_CONTROLLER = 22\n",
    ),
    Mutant(
        "F-20 as released",
        "version 2 of the request is not served",
        f"{_WIRE}/api_keys.py",
        "API_VERSIONS: (0, 4), UPDATE_FEATURES: (0, 2)}",
        "API_VERSIONS: (0, 4), UPDATE_FEATURES: (0, 1)}",
    ),
    Mutant(
        "F-21",
        "every item has the type of the first",
        f"{_WIRE}/requests.py",
        "        EarlyUpdate(feature.name, feature.version_level, update.feature_update_type)\n",
        "        EarlyUpdate(\n            feature.name,\n            feature.version_level,\n"
        "            body.feature_update[0].feature_update_type,\n        )\n",
    ),
    Mutant(
        "F-21 as released",
        "a level is one more than in the request",
        f"{_WIRE}/requests.py",
        "        int(item.max_version_level),\n        allow_downgrade",
        "        int(item.max_version_level) + 1,\n        allow_downgrade",
    ),
    Mutant(
        "F-22",
        "every type allows a downgrade",
        _DRAFTS,
        "allow=kind == EarlyUpdateType.ADD_OR_UPDATE_ALLOW_DOWNGRADE\n",
        "allow=True\n",
    ),
    Mutant(
        "F-23 as released",
        "a level below 1 is refused",
        _RELEASED,
        "    if kind is UpgradeType.UPGRADE:\n        return reject(\n",
        "    if True:\n        return reject(\n",
    ),
    Mutant(
        "F-24",
        "AllowDowngrade is always true",
        f"{_WIRE}/requests.py",
        "feature.version_level, update.allow_downgrade)\n",
        "feature.version_level, True)\n",
    ),
    Mutant(
        "F-24 as released",
        "version 0 has a type",
        _RELEASED,
        "    if version == 0:\n",
        "    if version < 0:\n",
    ),
    Mutant(
        "F-26",
        "a success has an empty text",
        f"{_WIRE}/responses.py",
        '        "error_code": response.error,\n        "error_message": response.message,\n    }\n',
        '        "error_code": response.error,\n'
        '        "error_message": response.message or "",\n    }\n',
    ),
    Mutant(
        "F-26 as released",
        "version 2 has a result for each feature",
        _UPDATES,
        "isinstance(request, UpdateFeatures) and request.version >= 2\n",
        "isinstance(request, UpdateFeatures) and request.version >= 3\n",
    ),
    Mutant(
        "F-27",
        "a success has no levels",
        _CONTROLLER,
        "replace(response, finalized=pushed), pushed, live_ids)\n",
        "response, pushed, live_ids)\n",
    ),
    Mutant(
        "F-28",
        "an update does not count as in progress",
        _CONTROLLER,
        "                self._processing.add(request_id)\n",
        "",
    ),
    Mutant(
        "F-29 as released",
        "released Kafka refuses a second request",
        _DIALECT,
        "    queues=True,\n",
        "    queues=False,\n",
    ),
    Mutant(
        "F-91 as released",
        "released Kafka refuses a second request",
        _DIALECT,
        "    queues=True,\n",
        "    queues=False,\n",
    ),
    Mutant(
        "F-91",
        "the early draft queues",
        _DIALECT,
        "    queues=False,\n    has_delete=True,\n",
        "    queues=True,\n    has_delete=True,\n",
    ),
    Mutant(
        "F-50",
        "deletions do not wait for each other",
        _CONTROLLER,
        "            case UpdateFeatures() | DeleteFeatures() if (\n",
        "            case UpdateFeatures() if (\n",
    ),
    Mutant(
        "F-30 as released",
        "2.7 to 3.9 apply all items or none",
        _DIALECT,
        "    per_item=True,\n",
        "    per_item=False,\n",
    ),
    Mutant(
        "F-31",
        "a failed request has the code of its item",
        _UPDATES,
        "        return _rejected(ErrorCode.FEATURE_UPDATES_FAILED, ",
        "        return _rejected(first.error, ",
    ),
    Mutant(
        "F-31 as released",
        "a failed item has the later draft's code",
        f"{_MACHINES}/features/items.py",
        "ErrorCode.INVALID_REQUEST, message))\n",
        "ErrorCode.FEATURE_UPDATES_FAILED, message))\n",
    ),
    Mutant(
        "F-33 as released",
        "fenced brokers are not checked",
        "controller/kraft/support.py",
        '_first_refusal("Broker", state.brokers, feature, level)',
        '_first_refusal("Broker", [it for it in state.brokers if not it.fenced], feature, level)',
    ),
    Mutant(
        "F-35",
        "a supported feature must be finalized",
        _CHECK,
        "    candidates = (\n        Incompatibility(\n",
        "    candidates = (\n        *(\n            Incompatibility(name, FeatureLevel(0), capabilities.ranges[name], Verdict.NO)\n            for name in capabilities.ranges.keys() - levels.keys()\n        ),\n    ) + tuple(\n        Incompatibility(\n",
    ),
    Mutant(
        "F-37",
        "a permitted downgrade skips the brokers",
        _DRAFTS,
        "    incompatible = context.incompatible_brokers(name, level)\n",
        "    is_lower = existing is not None and level < existing\n"
        "    incompatible = [] if is_lower else context.incompatible_brokers(name, level)\n",
    ),
    Mutant(
        "F-38",
        "the brokers that joined last do not count",
        _CONTROLLER,
        "                self._dialect, self._store.levels, self._membership.live.accepted, self._local\n",
        "                self._dialect, self._store.levels, {}, self._local\n",
    ),
    Mutant(
        "F-39",
        "a broker supports one level more than the controller finds",
        _BROKER,
        "        incompatible = [*incompatible_levels(self._dialect, self._capabilities, levels)]\n",
        "        lower = {name: max(0, level - 1) for name, level in levels.items()}\n"
        "        incompatible = [*incompatible_levels(self._dialect, self._capabilities, lower)]\n",
    ),
    Mutant(
        "F-41",
        "a feature that a broker supports cannot be removed",
        "controller/kraft/updates.py",
        "        if update.level < 0:\n",
        "        if update.level < 1 and any(\n"
        "            update.feature in broker.ranges for broker in self.state.brokers\n        ):\n",
    ),
    Mutant(
        "F-42",
        "levels that were finalized before are not changed",
        _CONTROLLER,
        "self._store.write(decision.levels, self._election",
        "self._store.write({**decision.levels, **self._store.levels}, self._election",
    ),
    Mutant(
        "F-43",
        "a broker that a new level excludes stays",
        _BROKER,
        "        if incompatible:\n",
        "        if incompatible and not self.registered:\n",
    ),
    Mutant(
        "F-44",
        "a refused request empties the znode",
        _UPDATES,
        "    return FeatureDecision(None, UpdateResponse(error, message))\n",
        "    return FeatureDecision({}, UpdateResponse(error, message))\n",
    ),
    Mutant(
        "F-44 as released",
        "one bad item keeps the valid ones from being applied",
        _UPDATES,
        "    if is_atomic and failed:\n",
        "    if failed:\n",
    ),
    Mutant(
        "F-45",
        "a lost response is reported as a failure",
        "admin/features/client.py",
        "            raise outcome_unknown(str(error)) from error\n",
        "            raise UnreachableError(str(error)) from error\n",
    ),
    Mutant(
        "F-45",
        "a session that ends during a write is reported as not written",
        _PENDING,
        "    if pending.stage is RequestStage.WRITING:\n",
        "    if False:\n",
    ),
    Mutant(
        "F-48",
        "a change is sent to any broker",
        "admin/connections.py",
        "                address = await controller_lookup.controller_from_metadata(\n                    connection, self.timeout_s\n                )\n",
        "                address = connection.address\n",
    ),
    Mutant(
        "F-49",
        "a deletion waits half as long as it says",
        "admin/features/kip584_drafts.py",
        "    return form(timeout_ms=int(timeout_s * 1000), feature=names)\n",
        "    return form(timeout_ms=int(timeout_s * 500), feature=names)\n",
    ),
    Mutant(
        "F-52",
        "nobody says what deletion is for",
        _DRAFT_COMMANDS,
        "    warn_of_deletion()\n    early",
        "    early",
    ),
    Mutant(
        "F-53",
        "a feature that is not finalized can be deleted",
        _DRAFTS,
        "    if name not in context.levels:\n        return reject",
        "    if False:\n        return reject",
    ),
    Mutant(
        "F-53 as released",
        "a feature that is not finalized can be deleted",
        _RELEASED,
        "    if existing is None:\n        return reject",
        "    if False:\n        return reject",
    ),
    Mutant(
        "F-67",
        "a broker that joins later is not checked against the update",
        _MEMBERSHIP,
        "self._live_broker(broker_id, outcome), levels)",
        "self._live_broker(broker_id, outcome), {})",
    ),
    Mutant(
        "F-68",
        "a broker that joins after an update that excludes it is a live one",
        f"{_MACHINES}/controller/live_brokers.py",
        "            self.excluded.add(broker_id)\n            return False\n",
        "            pass\n",
    ),
    Mutant(
        "F-68",
        "an incompatible broker that joins is sent the levels",
        _MEMBERSHIP,
        "                excluded.append(broker_id)\n",
        "                excluded.append(broker_id)\n                self.joined.append(broker_id)\n",
    ),
    Mutant(
        "F-71",
        "brokers learn of changed levels when they restart",
        _BROKER,
        "                task = self._refresh() if path == self._dialect.path else None\n",
        "                task = None\n",
    ),
    Mutant(
        "F-70",
        "a starting controller writes its own levels over those of the znode",
        _STORE,
        "            if self._stat is not None and not self._needs_rewrite():\n"
        "                return WriteResult.WRITTEN\n"
        "            operation: WriteOperation\n"
        "            if self._stat is None:\n",
        "            if self._stat is not None and self._stat.version % 2:\n"
        "                return WriteResult.WRITTEN\n"
        "            operation: WriteOperation\n"
        "            if self._stat is not None:\n"
        "                own = encoding.encode_features(self._dialect, self._default_levels())\n"
        "                operation = SetData(self._dialect.path, own, self._stat.version)\n"
        "            elif self._stat is None:\n",
    ),
    Mutant(
        "F-93",
        "a broker checks newer levels only",
        _BROKER,
        "                if self._check_levels(message.features) and message.epoch > self.cached.epoch:\n",
        "                if message.epoch > self.cached.epoch and self._check_levels(message.features):\n",
    ),
    # The wire
    Mutant(
        "F-47",
        "a push has no epoch",
        f"{_WIRE}/update_metadata.py",
        "            features_epoch=message.epoch,\n",
        "            features_epoch=-1,\n",
    ),
    Mutant(
        "F-54",
        "version 3 of ApiVersions has no features",
        f"{_WIRE}/responses.py",
        "FEATURES_SINCE: Final = 3\n",
        "FEATURES_SINCE: Final = 4\n",
    ),
    Mutant(
        "F-54 as released",
        "a range ends where it begins",
        "streams/apiversions/node_features.py",
        "            supported[FeatureName(feature.name)] = SupportedRange(advertised.low, advertised.high)\n",
        "            supported[FeatureName(feature.name)] = SupportedRange(advertised.low, advertised.low)\n",
    ),
    Mutant(
        "F-55",
        "the drafts' level is missing",
        f"{_WIRE}/responses.py",
        "                version_level=level,\n            )\n            for name, level in sorted(response",
        "                version_level=0,\n            )\n            for name, level in sorted(response",
    ),
    Mutant(
        "F-55 as released",
        "the minimum is 1",
        f"{_WIRE}/responses.py",
        "                min_version_level=level,\n",
        "                min_version_level=1,\n",
    ),
    Mutant(
        "F-57",
        "an older answer replaces a newer one",
        _CLIENT,
        "        if response.epoch > self.epoch:\n",
        "        if response.epoch != self.epoch:\n",
    ),
    Mutant(
        "F-90 as released",
        "metadata.version is left out",
        "controller/kraft/releases.py",
        "        (FeatureName(feature), (low, high)) for feature, (low, high) in ranges.items()\n",
        "        (FeatureName(feature), (low, high))\n"
        "        for feature, (low, high) in ranges.items()\n"
        "        if feature != METADATA_VERSION\n",
    ),
    # Clients and commands
    Mutant(
        "F-72",
        "the record has the address of no node",
        "admin/features/reader.py",
        "        return read_metadata(response, connection.address, drafts.LEVEL_FIELD)\n",
        "        address = connection.address._replace(port=1)\n"
        "        return read_metadata(response, address, drafts.LEVEL_FIELD)\n",
    ),
    Mutant(
        "F-72 as released",
        "a node without an epoch has epoch 0",
        "admin/features/metadata.py",
        "        epoch=epoch if has_epoch else None,\n",
        "        epoch=max(epoch, 0),\n",
    ),
    Mutant(
        "F-74 as released",
        "all features have the first error",
        "admin/features/update_request.py",
        "    if error != 0 or not results:\n",
        "    error = error or next((each.error_code for each in results if each.error_code), 0)\n    if error != 0 or not results:\n",
    ),
    Mutant(
        "F-76",
        "--controller asks any broker",
        "admin/features/reader.py",
        "        if controller or self._bootstrap.controllers:\n",
        "        if self._bootstrap.controllers:\n",
    ),
    Mutant(
        "F-77",
        "the document has no port",
        _DOCUMENTS,
        '        "port": metadata.node.port,\n',
        "",
    ),
    Mutant(
        "F-78",
        "the early draft has the later names",
        _DOCUMENTS,
        "    early = dialect is FeatureDialect.EARLY\n",
        "    early = False\n",
    ),
    Mutant(
        "F-78",
        "the later draft has the early names",
        _DOCUMENTS,
        "    early = dialect is FeatureDialect.EARLY\n",
        "    early = True\n",
    ),
    Mutant(
        "F-79",
        "a change is sent to any broker",
        "admin/connections.py",
        "                address = await controller_lookup.controller_from_metadata(\n                    connection, self.timeout_s\n                )\n",
        "                address = connection.address\n",
    ),
    Mutant(
        "F-81",
        "only the first level of --upgrade is taken",
        f"{_COMMANDS}/update.py",
        "        *_updates(_split(upgrade), allow_downgrade=False),\n",
        "        *_updates(_split(upgrade)[:1], allow_downgrade=False),\n",
    ),
    Mutant(
        "F-82",
        "upgrades of the early draft are not confirmed",
        _DRAFT_COMMANDS,
        "        if raised and target.dialect is FeatureDialect.EARLY:\n",
        "        if False:\n",
    ),
    Mutant(
        "F-82",
        "a feature that is not finalized has level 0",
        _DRAFT_COMMANDS,
        '        existing = "none" if level is None else f"v{level}"\n',
        '        existing = f"v{level or 0}"\n',
    ),
    Mutant(
        "F-83",
        "upgrades of the later draft are confirmed",
        _DRAFT_COMMANDS,
        "        if raised and target.dialect is FeatureDialect.EARLY:\n",
        "        if raised:\n",
    ),
    Mutant(
        "F-84",
        "names are not numbered",
        _DRAFT_COMMANDS,
        '    lines += [f"{number}. {name}" for number, name',
        '    lines += [f"{name}" for number, name',
    ),
    Mutant(
        "F-86",
        "the old levels are printed",
        _DRAFT_COMMANDS,
        "        metadata = await admin.describe_applied(() if result.refused else updates)\n",
        "",
    ),
    Mutant(
        "F-88",
        "the second deletion is forgotten",
        _DRAFTS,
        "for name in dict.fromkeys(request.names)]\n",
        "for name in dict.fromkeys(request.names[:1])]\n",
    ),
    Mutant(
        "F-89",
        "a feature that is not finalized is not added",
        _DRAFTS,
        "    existing = context.levels.get(name)\n",
        "    existing = context.levels.get(name)\n"
        "    if existing is None and context.dialect.deletes_by_level:\n"
        '        return reject(name, "The feature is not finalized.")\n',
    ),
    Mutant(
        "F-38",
        "a broker that a lower level admits again does not count",
        f"{_MACHINES}/controller/live_brokers.py",
        "        for broker_id in previously_excluded:\n            self._admit(broker_id, levels)\n",
        "        self.excluded |= previously_excluded\n",
    ),
    Mutant(
        "F-70",
        "a starting controller lowers levels above its own ranges",
        _STORE,
        "            self.levels = encoding.levels_of(self._znode)\n",
        "            self.levels = {\n                name: min(level, self._supported.get(name, (0, level))[1])\n                for name, level in encoding.levels_of(self._znode).items()\n            }\n",
    ),
    Mutant(
        "F-54 as released",
        "a controller without a znode has epoch 0",
        _STORE,
        "        return -1 if self._stat is None else self._stat.version\n",
        "        return 0 if self._stat is None else self._stat.version\n",
    ),
)
