"""The bugs of the rows about KIP-584 and its commands, for `tests.mutants`.

A mutant is one exact replacement, of a text that is in its file once. Add the ones that nobody
noticed: a row is shown when a test fails for a product that does otherwise. The file is long, since
it is a list.
"""

from typing import Final

from tests.mutants.mutant import Mutant

_MACHINES: Final = "reference/zookeeper/machines"
_CONTROLLER: Final = f"{_MACHINES}/controller/controller.py"
_PENDING: Final = f"{_MACHINES}/controller/pending.py"
_DIALECT: Final = f"{_MACHINES}/dialect.py"
_UPDATES: Final = f"{_MACHINES}/features/updates.py"
_DRAFTS: Final = f"{_MACHINES}/features/drafts.py"
_BROKER: Final = f"{_MACHINES}/broker.py"
_CLIENT: Final = f"{_MACHINES}/client.py"
_COMPATIBILITY: Final = f"{_MACHINES}/compatibility.py"
_FEATURES: Final = "cli/commands/features"
_FEATURE_ADMIN: Final = "admin/features/client.py"

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
        "F-68 as released",
        "an incompatible broker is one of the operations",
        f"{_MACHINES}/controller/live_brokers.py",
        "            for group in self.accepted.values()\n            for broker_id in group\n",
        "            for group in (*self.accepted.values(), self.excluded)\n"
        "            for broker_id in group\n",
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
        "        return self.lowest_minimum <= supported.minimum <= supported.maximum\n",
        "        return 0 <= supported.minimum <= supported.maximum\n",
    ),
    Mutant(
        "F-04",
        "a reversed range is valid",
        _DIALECT,
        "        return self.lowest_minimum <= supported.minimum <= supported.maximum\n",
        "        return self.lowest_minimum <= supported.minimum\n",
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
        "reference/zookeeper/wire/api_keys.py",
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
    *(
        Mutant(
            row,
            "the same levels keep their old epoch",
            "tables/fold/api_versions.py",
            "    return image.features.with_set(levels, event.epoch, answer)\n",
            "    return image.features.with_snapshot(levels, event.epoch, answer)\n",
        )
        for row in ("F-58", "F-60")
    ),
    Mutant(
        "F-58 as released",
        "a controller overrules a broker with the same levels",
        "tables/fold/api_versions.py",
        "    return image.features.with_set(levels, event.epoch, answer)\n",
        "    return image.features.with_snapshot(levels, event.epoch, answer)\n",
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
    Mutant(
        "F-73",
        "a refused update returns the features",
        _FEATURE_ADMIN,
        "        (await self.update(requested, dry_run=dry_run)).check()\n",
        "        await self.update(requested, dry_run=dry_run)\n",
    ),
    Mutant(
        "F-73",
        "an update returns the features of any broker",
        _FEATURE_ADMIN,
        "            metadata = await self.describe(controller=True)\n",
        "            metadata = await self.describe()\n",
    ),
    Mutant(
        "F-75",
        "a deletion leaves level 1",
        _FEATURE_ADMIN,
        "FeatureUpdate(name, FeatureLevel(0), UpgradeType.SAFE_DOWNGRADE)",
        "FeatureUpdate(name, FeatureLevel(1), UpgradeType.SAFE_DOWNGRADE)",
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
        "cli/output/confirmation.py",
        '    return answer.strip().lower() in ("y", "yes")\n',
        '    return answer.strip().lower().startswith("y")\n',
    ),
    Mutant(
        "F-85",
        "an empty reply is a yes",
        "cli/output/confirmation.py",
        '    return answer.strip().lower() in ("y", "yes")\n',
        '    return answer.strip().lower() in ("", "y", "yes")\n',
    ),
    Mutant(
        "F-87",
        "enable-latest asks any broker",
        f"{_FEATURES}/common/latest.py",
        "            metadata = await admin.describe(controller=True)\n",
        "            metadata = await admin.describe()\n",
    ),
    Mutant(
        "M-03",
        "the default timeout is 30 s",
        "admin/features/update_request.py",
        "    timeout_s: float = 60.0,\n",
        "    timeout_s: float = 30.0,\n",
    ),
    Mutant(
        "M-22",
        "names of levels are refused",
        "cli/kafka_tools/features.py",
        "            if name.strip(_TRIMMED) != METADATA_VERSION or self._is_strict:\n",
        "            if True:\n",
    ),
    Mutant(
        "M-22",
        "names serve for any feature",
        "cli/kafka_tools/features.py",
        "            if name.strip(_TRIMMED) != METADATA_VERSION or self._is_strict:\n",
        "            if False:\n",
    ),
    Mutant(
        "M-22 as released",
        "the tool of a release takes names",
        "cli/kafka_tools/features.py",
        "            if name.strip(_TRIMMED) != METADATA_VERSION or self._is_strict:\n",
        "            if name.strip(_TRIMMED) != METADATA_VERSION:\n",
    ),
)
