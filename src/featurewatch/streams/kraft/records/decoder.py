"""Records of the metadata log, as ``kafka-dump-log --cluster-metadata-decoder`` prints them.

Two ways lead through a batch. The straight one takes records that are laid out as controllers write
them, and steps over unwanted ones after reading the API key. Whatever does not fit goes the
careful way, which reads every part and reports errors.
"""

import hashlib
from collections.abc import Collection
from contextlib import suppress
from itertools import islice
from typing import Any, Final, NamedTuple

from featurewatch.kafka.releases import from_releases
from featurewatch.streams.events import UNREADABLE
from featurewatch.streams.kraft.errors import RecordDecodeError, UnknownRecordError
from featurewatch.streams.kraft.records.batch import RecordBatch
from featurewatch.streams.kraft.records.compiler import Decoder, compiled
from featurewatch.streams.kraft.records.control import control_type, decode_control
from featurewatch.streams.kraft.records.fast_path import MOST_HEADS, count_alike, record_heads
from featurewatch.streams.kraft.records.frames import (
    FAILURES,
    RecordFrame,
    frame,
    reason_of,
    record_end,
)
from featurewatch.streams.kraft.records.schema import record_table
from featurewatch.streams.kraft.records.selection import (
    ALL_RECORDS,
    CONTROL_KEY,
    DEFAULT_RECORD_TYPES,
    REDACTED_RECORD_TYPES,
    SECRET_KEYS,
    STATE_RECORD_TYPES,
    TYPE_BY_KEY,
)
from featurewatch.streams.kraft.records.varint import uvarint

_FRAME_VERSION: Final = 1
_CONFIG: Final = "CONFIG_RECORD"
MAX_RECORD_BYTES: Final = 1 << 20
"""The largest record that is decoded. Those of large registrations have some KiB, and as JSON a
record may take twelve times its bytes, which the bus must still accept."""

MAX_UNKNOWN_KINDS: Final = 100
"""The kinds of unknown records that have a dead letter; of more, as in a log of random bytes, none
is kept."""

FIRST_OF_KIND: Final = "; later records of this kind get no dead letter"
"""The end of the reason of the first record of an unknown type or version."""

_STREAK: Final = 4
"""After so many unwanted records of one size in a row it pays to look for a run of them."""

Record = dict[str, Any]


class UndecodedRecord(NamedTuple):
    """A record that could not be read; ``payload`` is empty if it may hold a secret.

    Then ``reason`` ends with what may be shown of it: its version, length and digest.
    """

    offset: int
    reason: str
    payload: bytes


class DecodedBatch(NamedTuple):
    """A batch, decoded: ``records`` in order, with stand-ins for those that could not be read.

    ``skipped`` has the key of each unwanted record, in order (`wanted.count_types`). ``undecoded``
    has the unreadable ones with their bytes.
    """

    records: list[Record]
    skipped: bytes
    undecoded: list[UndecodedRecord]


def unreadable(
    offset: int, reason: str, unknown: UnknownRecordError | None = None, *, repeated: bool = False
) -> Record:
    """The stand-in for a record that could not be read.

    ``unknown`` is the failure, if its type or version is not known; ``repeated``: an earlier
    record of the kind is in the dead letters already.
    """
    data: dict[str, Any] = {"reason": reason}
    if unknown is not None:
        data |= {"unknown": unknown.kind, "hidesState": unknown.hides_state}
    if repeated:
        data["repeated"] = True
    return {"offset": offset, "type": UNREADABLE, "version": -1, "data": data}


@from_releases
def _decoder(key: int, version: int) -> Decoder:
    schema = record_table().records.get(key)
    if schema is None:
        raise UnknownRecordError(f"RECORD_TYPE_{key}-v{version}", f"record type {key} is not known")
    if version > schema.newest:
        raise UnknownRecordError(
            f"{schema.type}-v{version}",
            f"version {version} of {schema.type} is not known",
            hides_state=schema.type in STATE_RECORD_TYPES,
        )
    try:
        return compiled(schema, version, REDACTED_RECORD_TYPES.get(schema.type))
    except KeyError as kind:  # of a learned record
        raise RecordDecodeError(
            f"version {version} of {schema.type} has fields of type {kind}, which are not decoded"
        ) from None


def _setting_decoder(key: int, version: int, settings: frozenset[str]) -> Decoder:
    """A decoder of ConfigRecords that reads the values of these ``settings``, and of no others."""
    shown, schema = _decoder(key, version), record_table().records[key]
    whole = compiled(schema, version, None)

    def decode(buffer: bytes, start: int, end: int, offset: int) -> Record:
        record = shown(buffer, start, end, offset)
        return whole(buffer, start, end, offset) if record["data"]["name"] in settings else record

    return decode


class RecordDecoder:
    """Decodes batches, keeping the types in ``wanted`` and stepping over the others.

    ``settings`` are configuration names whose values are decoded too; without it no value is. If
    ConfigRecords are not wanted, only those of ``settings`` are kept. Raises ``ValueError`` for a
    type that no release has.

    Of records with an unknown type or version only the first of each kind is in ``undecoded``.
    ``unknown_kinds`` has those that were there before, and gets the others.
    """

    def __init__(
        self,
        wanted: Collection[str] = DEFAULT_RECORD_TYPES,
        settings: Collection[str] = (),
        unknown_kinds: set[str] | None = None,
    ) -> None:
        if unknown := set(wanted) - ALL_RECORDS:
            raise ValueError(f"no such metadata record types: {', '.join(sorted(unknown))}")
        self.wanted = frozenset(wanted)
        self._settings = frozenset(settings)
        self.unknown_kinds = set[str]() if unknown_kinds is None else unknown_kinds
        # By key, then version. None: step over. An unknown key has no versions and is not skipped.
        self._table: list[list[Decoder | None] | None] = [[] for _ in range(256)]
        for key, schema in record_table().records.items():
            keep = schema.type in self.wanted
            self._table[key] = [None] * (schema.newest + 1) if keep else None
            if schema.type == _CONFIG and self._settings and not keep:
                self._table[key] = []  # the careful way decides on each of them

    def _decoder(self, key: int, version: int) -> Decoder:
        if self._settings and TYPE_BY_KEY.get(key) == _CONFIG:
            return _setting_decoder(key, version, self._settings)
        return _decoder(key, version)

    def decode(self, batch: RecordBatch) -> DecodedBatch:
        """The records of a batch; raises ``ValueError`` if it has a fault, else nothing."""
        if batch.error:
            raise ValueError(f"not to be read: {batch.error}")
        records: list[Record] = []
        skipped = bytearray()
        undecoded: list[UndecodedRecord] = []
        try:
            if batch.control:
                self._walk_controls(batch, records, skipped, undecoded)
            else:
                self._walk(batch, records, skipped, undecoded)
        except FAILURES as failure:
            # The end of a record could not be found, and with it none of those that follow.
            count = len(records) + len(skipped)
            _lose(
                UndecodedRecord(
                    batch.base_offset + count,
                    f"{reason_of(failure)}; nothing after it in its record batch can be read",
                    b"",
                ),
                records,
                undecoded,
            )
        return DecodedBatch(records, bytes(skipped), undecoded)

    def _walk(
        self,
        batch: RecordBatch,
        records: list[Record],
        skipped: bytearray,
        undecoded: list[UndecodedRecord],
    ) -> None:
        b, p, batch_end = batch.buffer, batch.start, batch.end
        starts_with, versions_by_key, skip = b.startswith, self._table, skipped.append
        offsets = range(batch.base_offset, batch.base_offset + batch.record_count)
        straight = offsets[:MOST_HEADS]
        left = zip(straight, record_heads(len(straight)), strict=False)
        last_size = streak = 0
        for offset, (head, head_size) in left:
            # The length in one byte or two. One with more comes out above the limit below.
            size = b[p]
            at = p + 1
            if size > 127:
                size += (b[at] << 7) - 128
                at += 1
            end = at + (size >> 1)
            rest = end - at - head_size
            # What follows the head: the value's length in one byte or two, the value, no headers.
            start = at + head_size + (1 if rest < 66 else 2)
            if (
                4 < rest < 8180
                and end <= batch_end
                and not size & 1
                and starts_with(head, at)
                and b[start] == _FRAME_VERSION
            ):
                versions = versions_by_key[b[start + 1]]
                if versions is None:
                    skip(b[start + 1])
                    streak = streak + 1 if end - p == last_size else 0
                    last_size = end - p
                    if streak >= _STREAK:
                        run = count_alike(
                            batch, p, last_size, start, offset - batch.base_offset + 1
                        )
                        skipped += b[start + 1 : start + 2] * run
                        end += last_size * run
                        # As many as are alike; without a run they are checked one by one.
                        next(islice(left, run, run), None)
                        streak = streak if run else 0
                    p = end
                    continue
                doubled = (end - 1 - start) << 1
                if b[end - 1] == 0 and (
                    b[start - 1] == doubled
                    if rest < 66
                    else b[start - 2] == doubled & 127 | 128 and b[start - 1] == doubled >> 7
                ):
                    try:
                        version = b[start + 2]
                        decode = versions[version]
                        if decode is None:
                            decode = versions[version] = self._decoder(b[start + 1], version)
                        records.append(decode(b, start + 3, end - 1, offset))
                        p = end
                        continue
                    except FAILURES:
                        pass  # The careful way finds the error.
            p = self._step(batch, p, offset, records, skipped, undecoded)
        for offset in offsets[MOST_HEADS:]:
            p = self._step(batch, p, offset, records, skipped, undecoded)

    def _walk_controls(
        self,
        batch: RecordBatch,
        records: list[Record],
        skipped: bytearray,
        undecoded: list[UndecodedRecord],
    ) -> None:
        p = batch.start
        for offset in range(batch.base_offset, batch.base_offset + batch.record_count):
            p = self._step(batch, p, offset, records, skipped, undecoded)

    def _step(
        self,
        batch: RecordBatch,
        p: int,
        offset: int,
        records: list[Record],
        skipped: bytearray,
        undecoded: list[UndecodedRecord],
    ) -> int:
        """One record, the careful way; returns where the next one begins.

        Raises one of `FAILURES` when that cannot be determined.
        """
        at, end = record_end(batch.buffer, p, batch.end)
        payload, withheld = b"", ""
        try:
            parts = frame(batch.buffer, at, end, offset - batch.base_offset)
            if _may_be_secret(batch, parts):
                withheld = _described(batch, parts)
            else:
                payload = batch.buffer[parts.start : parts.end]
            if end - at > MAX_RECORD_BYTES:
                raise RecordDecodeError(f"it has {end - at} bytes, more than any metadata record")
            read = self._control if batch.control else self._record
            record = read(batch.buffer, parts, offset)
        except FAILURES as failure:
            lost = UndecodedRecord(offset, reason_of(failure) + withheld, payload)
            self._lose(lost, failure, records, undecoded)
        else:
            if isinstance(record, int):
                skipped.append(record)
            else:
                records.append(record)
        return end

    def _lose(
        self,
        lost: UndecodedRecord,
        failure: Exception,
        records: list[Record],
        undecoded: list[UndecodedRecord],
    ) -> None:
        """Adds the stand-in of a record, and its bytes unless others of its kind are there."""
        unknown = failure if isinstance(failure, UnknownRecordError) else None
        repeated = unknown is not None and (
            unknown.kind in self.unknown_kinds or len(self.unknown_kinds) >= MAX_UNKNOWN_KINDS
        )
        records.append(unreadable(lost.offset, reason_of(failure), unknown, repeated=repeated))
        if unknown is not None and not repeated:
            self.unknown_kinds.add(unknown.kind)
            lost = lost._replace(reason=lost.reason + FIRST_OF_KIND)
        if not repeated:
            undecoded.append(lost)

    def _record(self, buffer: bytes, parts: RecordFrame, offset: int) -> Record | int:
        """A record, or the key of an unwanted one."""
        if parts.key_start >= 0:
            raise RecordDecodeError("it has a key, which no metadata record has")
        key, at = _type_key(buffer, parts)
        name = TYPE_BY_KEY.get(key) if key < CONTROL_KEY else None
        is_unwanted = name is not None and name not in self.wanted
        if is_unwanted and not (name == _CONFIG and self._settings):
            return key
        version, at = uvarint(buffer, at)
        decode = self._decoder(key, version)
        try:
            record = decode(buffer, at, parts.end, offset)
        except FAILURES as failure:
            raise RecordDecodeError(f"{name} version {version}: {reason_of(failure)}") from None
        return key if is_unwanted and record["data"]["name"] not in self._settings else record

    def _control(self, buffer: bytes, parts: RecordFrame, offset: int) -> Record | int:
        """A control record, or the key of an unwanted one."""
        number = control_type(buffer, parts)
        name = TYPE_BY_KEY[number | CONTROL_KEY]
        if name not in self.wanted:
            return number | CONTROL_KEY
        try:
            return decode_control(buffer, parts, number, offset)
        except FAILURES as failure:
            raise RecordDecodeError(f"{name}: {reason_of(failure)}") from None


def _type_key(buffer: bytes, parts: RecordFrame) -> tuple[int, int]:
    """The API key of a record, and the position of its version (``AbstractApiMessageSerde``)."""
    version, at = uvarint(buffer, parts.start)
    if version == 0:
        raise RecordDecodeError(
            "it was written by the preview of KRaft in Kafka 2.8 (frame version 0)"
        )
    if version != _FRAME_VERSION:
        raise RecordDecodeError(f"frame version {version} is not known, only {_FRAME_VERSION}")
    return uvarint(buffer, at)


def _may_be_secret(batch: RecordBatch, parts: RecordFrame) -> bool:
    """Whether a value could hold a secret: also where its type or its version is unknown.

    A later release may have records with credentials that `SECRET_KEYS` does not list.
    """
    try:
        if batch.control:
            return control_type(batch.buffer, parts) | CONTROL_KEY not in TYPE_BY_KEY
        key, at = _type_key(batch.buffer, parts)
        version, at = uvarint(batch.buffer, at)
    except FAILURES:
        return True
    schema = record_table().records.get(key)
    is_known = schema is not None and version <= schema.newest
    return at > parts.end or not is_known or key in SECRET_KEYS


def _described(batch: RecordBatch, parts: RecordFrame) -> str:
    """Describes a withheld value without its content: its version, length and digest."""
    value = batch.buffer[parts.start : parts.end]
    described = f"{len(value)} bytes, SHA-256 {hashlib.sha256(value).hexdigest()}"
    if not batch.control:
        with suppress(*FAILURES):
            _, at = _type_key(batch.buffer, parts)
            described = f"version {uvarint(batch.buffer, at)[0]}, {described}"
    return f" ({described})"


def _lose(loss: UndecodedRecord, records: list[Record], undecoded: list[UndecodedRecord]) -> None:
    undecoded.append(loss)
    records.append(unreadable(loss.offset, loss.reason))


def redacted(batch: RecordBatch) -> bytes:
    """The bytes of a batch with a fault as far as they may be shown.

    The whole batch where every record in it still reads as one without a secret, otherwise its
    header alone: in a damaged batch a credential may look like anything.
    """
    decoded = RecordDecoder(ALL_RECORDS).decode(batch._replace(error=""))
    secret = any(record["type"] in REDACTED_RECORD_TYPES for record in decoded.records)
    end = batch.start if decoded.undecoded or secret or not decoded.records else batch.end
    return batch.buffer[batch.at : end]
