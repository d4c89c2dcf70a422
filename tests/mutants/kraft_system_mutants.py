"""The bugs of the rows about what brokers and controllers of KRaft do, for `tests.mutants`."""

from typing import Final

from tests.mutants.mutant import Mutant

_MACHINES: Final = "reference/kraft/machines"
_BROKER: Final = f"{_MACHINES}/broker"
_LIFECYCLE: Final = f"{_BROKER}/lifecycle.py"
_LOADER: Final = f"{_BROKER}/loader.py"
_CONNECTIONS: Final = f"{_BROKER}/connections.py"
_LEVELS: Final = f"{_MACHINES}/metadata/levels.py"
_COMMITTED: Final = f"{_MACHINES}/controller/committed.py"
_CONTROLLER: Final = f"{_MACHINES}/controller/controller.py"
_FEATURES: Final = f"{_MACHINES}/controller/features.py"

KRAFT_SYSTEM_MUTANTS: Final = (
    Mutant(
        "M-05",
        "the controller counts the types from 1, as released",
        _FEATURES,
        "UpgradeType.of(one.upgrade_type + is_kip)",
        "UpgradeType.of(one.upgrade_type)",
    ),
    Mutant(
        "M-08",
        "a dry run is a request like any other",
        _FEATURES,
        "dry_run=request.validate_only",
        "dry_run=False",
    ),
    Mutant(
        "M-31",
        "the components of brokers keep what they had",
        _LOADER,
        "            self._out.append(ImagePublished(self._published, is_reload=True))\n",
        "            self._out.append(ImagePublished(self._published))\n",
    ),
    Mutant(
        "M-32",
        "a broker reloads without a snapshot of the new level",
        _LOADER,
        "        self._metadata.rewrite(self._write())\n",
        "        self._metadata.rewrite(at_level(self._metadata.state).records)\n",
    ),
    Mutant(
        "M-42",
        "a refused broker ends after a while",
        _LIFECYCLE,
        "        if self.settings.form is Form.RELEASED:\n            self._deadline_ms",
        "        if True:\n            self._deadline_ms",
    ),
    Mutant(
        "M-42",
        "a refused broker ends at the level of the log",
        _LIFECYCLE,
        "        if self.epoch == NO_EPOCH:\n",
        "        if self.epoch == NO_EPOCH and False:\n",
    ),
    Mutant(
        "M-42 as released",
        "a refused broker tries for ever",
        _LIFECYCLE,
        "        if self.settings.form is Form.RELEASED:\n            self._deadline_ms",
        "        if False:\n            self._deadline_ms",
    ),
    Mutant(
        "M-46",
        "an active controller ends without resigning",
        _CONTROLLER,
        "            self._out.append(Resign())\n",
        "            pass\n",
    ),
    Mutant(
        "M-46",
        "an active controller resigns and runs on",
        _CONTROLLER,
        "            self._out.append(Halt(committed.unsupported))\n",
        "            pass\n",
    ),
    Mutant(
        "M-47",
        "a broker ends and leaves its registration",
        _LIFECYCLE,
        "        self._enter(BrokerState.UNREGISTERING)\n",
        "        self._enter(BrokerState.UNREGISTERING)\n        self._end('')\n        return\n",
    ),
    Mutant(
        "M-47",
        "a broker unregisters and runs on",
        _LIFECYCLE,
        "        if response.error_code in (NONE, BROKER_ID_NOT_REGISTERED):\n",
        "        if False:\n",
    ),
    Mutant(
        "M-47",
        "the loader publishes a level that is not supported",
        _LOADER,
        "        return None if is_supported or self._settings.form is Form.RELEASED else level\n",
        "        return None\n",
    ),
    Mutant(
        "M-47 as released",
        "a released broker ends at an unsupported level",
        _LIFECYCLE,
        "        if self._unsupported is None or self.settings.form is Form.RELEASED:\n",
        "        if self._unsupported is None:\n",
    ),
    Mutant(
        "M-48",
        "peers are not asked at a new level",
        _CONNECTIONS,
        "        for broker_id in self._peers:\n            self._renegotiate(broker_id)\n",
        "",
    ),
    Mutant(
        "M-48",
        "the versions of the old level are used until the answer",
        _CONNECTIONS,
        "        self._peers[broker_id] = None\n        self._retries.pop(broker_id, None)\n"
        "        self._numbers += 1\n",
        "        self._retries.pop(broker_id, None)\n        self._numbers += 1\n",
    ),
    Mutant(
        "M-48",
        "brokers of other processes are not asked",
        "reference/kraft/light_brokers/host.py",
        "        versions = None if broker is None else await self._links.versions(broker)\n",
        "        versions = None\n",
    ),
    Mutant(
        "M-49",
        "a request is used one level too early",
        f"{_BROKER}/api_versions.py",
        "        found = [version for since, version in self.newest if since <= level]\n",
        "        found = [version for since, version in self.newest if since <= level + 1]\n",
    ),
    Mutant(
        "M-50",
        "connections stay open at a new level",
        _CONNECTIONS,
        "        self._out += [CloseClient(connection_id) for connection_id in self._clients]\n",
        "",
    ),
    Mutant(
        "M-50",
        "the same level closes connections again",
        _CONNECTIONS,
        "before in (None, level)",
        "before is None",
    ),
    Mutant(
        "M-50 as released",
        "a released broker closes connections",
        _CONNECTIONS,
        "        if self._form is Form.RELEASED or before in (None, level):\n",
        "        if before in (None, level):\n",
    ),
    Mutant(
        "M-54",
        "the snapshot of a downgrade has the higher level",
        _LEVELS,
        '{"name": METADATA_VERSION, "featureLevel": level})]\n',
        '{"name": METADATA_VERSION, "featureLevel": level + 1})]\n',
    ),
    Mutant(
        "M-58",
        "types of a higher level are kept",
        _LEVELS,
        "    is_known = level >= rule.since\n",
        "    is_known = True\n",
    ),
    Mutant(
        "M-58",
        "fields of a higher level are kept",
        _LEVELS,
        "            removed.add(name)\n",
        "            pass\n",
    ),
    Mutant(
        "M-58",
        "the version of a record is not lowered",
        _LEVELS,
        "    version = rule.version_at(level)\n",
        "    version = max(record.version, rule.version_at(level))\n",
    ),
    Mutant(
        "M-61",
        "a broker makes no snapshot before the change",
        _LOADER,
        "            self._snapshot_before()\n",
        "            pass\n",
    ),
    Mutant(
        "M-61",
        "a controller makes no snapshot before the change",
        _COMMITTED,
        "        if is_change and before is not None:\n            self._snapshot(trims=False)\n",
        "",
    ),
    Mutant(
        "M-62",
        "the state is published as it was",
        _LOADER,
        "        self._metadata.rewrite(self._write())\n",
        "        self._write()\n",
    ),
)
