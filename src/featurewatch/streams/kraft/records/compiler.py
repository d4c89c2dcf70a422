"""Compiles one flat Python function for one version of one record type.

A decoder that walks the schema spends most of its time on finding the next field. Here the schema
is walked once: adjacent fields of fixed width, with the length byte of what follows them, become
one ``struct`` read, and the rest is straight-line code. `source` shows what is run.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count as counter
from struct import Struct
from typing import Any

from featurewatch.streams.kraft.records.primitives import NAMES
from featurewatch.streams.kraft.records.schema import Field, RecordSchema

Decoder = Callable[[bytes, int, int, int], dict[str, Any]]
"""From (buffer, start, end, offset) to ``{"offset", "type", "version", "data"}``.

Raises `RecordDecodeError`, ``IndexError``, ``struct.error`` or ``UnicodeDecodeError`` on bytes that
are not such a record.
"""

_FIXED = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
_EXPRESSIONS = {"uuid": "UUIDS[{}]", "float64": "number({})"}
_SEQUENCES = {"string": "string", "[]string": "strings", "[]int32": "ints", "[]uuid": "uuids"}
_QUICK = {
    "string": ("{n} - 1", "b[p:q].decode()"),
    "[]int32": ("4 * {n} - 4", "[*INTS[{n} - 1](b, p)]"),
    "[]uuid": ("16 * {n} - 16", "[*UUID_LISTS[b[p:q]]]"),
}
"""How a length below 128 is read in place: the size in bytes, and the value."""


class _Writer:
    """Collects lines, and fields of fixed width until something of another kind flushes them."""

    def __init__(self, structs: dict[str, Any]) -> None:
        self.lines: list[str] = []
        self._depth = 1
        self._run: list[tuple[str, str]] = []
        self._names = (f"v{i}" for i in counter())
        self._structs = structs

    def line(self, text: str) -> None:
        self.lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.line(head)
        self._depth += 1
        yield
        self._depth -= 1

    def name(self) -> str:
        return next(self._names)

    def fixed(self, code: str) -> str:
        name = self.name()
        self._run.append((code, name))
        return name

    def flush(self) -> None:
        """Reads the pending fields of fixed width."""
        run, self._run = self._run, []
        if not run:
            return
        codes = "".join(code for code, _ in run)
        if codes == "B":
            self.line(f"{run[0][1]} = b[p]; p += 1")
            return
        layout = Struct(f">{codes}")
        reader = f"read_{codes}".replace("?", "o")
        self._structs[reader] = layout.unpack_from
        targets = ", ".join(name for _, name in run)
        self.line(f"{targets}{',' if len(run) == 1 else ''} = {reader}(b, p); p += {layout.size}")

    def field(self, field: Field, version: int) -> str:
        """Reads one field; the expression for its value (valid after the next flush)."""
        if field.kind in _FIXED:
            return _EXPRESSIONS.get(field.kind, "{}").format(self.fixed(_FIXED[field.kind]))
        if field.kind == "struct":
            return self.struct(field.fields, version)
        length = self.fixed("B")
        self.flush()
        if field.kind == "[]struct":
            return self._array_of_structs(field, length, version)
        return self._sequence(field, length)

    def _sequence(self, field: Field, length: str) -> str:
        value = self.name()
        slow = f"{value}, p = {_SEQUENCES[field.kind]}(b, p, {length}, end, {field.nullable})"
        if field.kind not in _QUICK:
            self.line(slow)
            return value
        size, quick = (text.format(n=length) for text in _QUICK[field.kind])
        with self.block(f"if 0 < {length} < 128:"):
            self.line(f"q = p + {size}; {value} = {quick}; p = q")
        with self.block("else:"):
            self.line(slow)
        return value

    def _array_of_structs(self, field: Field, length: str, version: int) -> str:
        value, number = self.name(), self.name()
        self.line(f"{number}, p = count(b, p, {length}, end, 1)")
        self.line(f"{value} = []")
        with self.block(f"for _ in range(required({number})):"):
            self.line(f"{value}.append({self.struct(field.fields, version)})")
        return value

    def struct(self, fields: Sequence[Field], version: int) -> str:
        """Reads a nested struct with its (unknown) tags; the expression for its value."""
        entries = [
            f'"{field.name}": {self.field(field, version)}'
            for field in fields
            if field.since <= version
        ]
        tags = self.fixed("B")
        self.flush()
        with self.block(f"if {tags}:"):
            self.line(f"p = skip_tags(b, p, {tags}, end)")
        return "{" + ", ".join(entries) + "}"


def _tagged(fields: Sequence[Field], structs: dict[str, Any]) -> list[str]:
    """The function that reads a tagged section into ``data``, defaults left out as Kafka does."""
    writer = _Writer(structs)
    with writer.block("if left > 127:"):
        writer.line('raise Unreadable("it says that it has more tagged fields than can be")')
    with writer.block("for _ in range(left):"):
        writer.line("tag = b[p]; size = b[p + 1]; p += 2")
        with writer.block("if tag > 127 or size > 127:"):
            writer.line("tag, size, p = tag_head(b, p - 2)")
        writer.line("after = p + size")
        with writer.block("if after > end:"):
            writer.line('raise Unreadable("a tagged field is longer than the record")')
        for keyword, field in zip(["if"] + ["elif"] * len(fields), fields, strict=False):
            with writer.block(f"{keyword} tag == {field.tag}:"):
                value = writer.field(field, 0)
                writer.flush()
                with writer.block(f"if (value := {value}) != {field.default!r}:"):
                    writer.line(f'data["{field.name}"] = value')
        with writer.block("else:"):
            writer.line("p = after")
        with writer.block("if p != after:"):
            writer.line('raise Unreadable("a tagged field is not as long as it says")')
    writer.line("return p")
    return ["def tagged(b, p, left, end, data):", *writer.lines]


def _record(
    schema: RecordSchema, version: int, visible: Sequence[str] | None, structs: dict[str, Any]
) -> str:
    fields = [field for field in schema.at(version) if not field.tagged]
    tags = [field for field in schema.at(version) if field.tagged]
    if visible is not None:
        fields = [field for field in fields if field.name in visible]
    writer = _Writer(structs)
    entries = ", ".join(f'"{field.name}": {writer.field(field, version)}' for field in fields)
    if visible is not None:
        writer.flush()
        with writer.block("if p > end:"):
            writer.line("raise misfit(p, end)")
        writer.line(f"data = {{{entries}}}")
    else:
        left = writer.fixed("B")
        writer.flush()
        writer.line(f"data = {{{entries}}}")
        reader = "tagged(b, p, {}, end, data)" if tags else "skip_tags(b, p, {}, end)"
        with writer.block(f"if {left}:"):
            writer.line(f"p = {reader.format(left)}")
        with writer.block("if p != end:"):
            writer.line("raise misfit(p, end)")
    writer.line(
        f'return {{"offset": offset, "type": "{schema.type}", "version": {version}, "data": data}}'
    )
    helper = _tagged(tags, structs) if tags and visible is None else []
    return "\n".join([*helper, "def decode(b, p, end, offset):", *writer.lines, ""])


def source(schema: RecordSchema, version: int, visible: Sequence[str] | None = None) -> str:
    """The Python source of the decoder; arguments as `compiled`."""
    return _record(schema, version, visible, {})


def compiled(schema: RecordSchema, version: int, visible: Sequence[str] | None = None) -> Decoder:
    """The decoder for one version.

    ``visible`` names the fields at the beginning of a record that are shown when the rest must not
    be decoded (None: every field).
    """
    scope: dict[str, Any] = dict(NAMES)
    code = compile(
        _record(schema, version, visible, scope), f"<{schema.type} version {version}>", "exec"
    )
    exec(code, scope)  # noqa: S102 - our own source, made from the table in the package
    decoder: Decoder = scope["decode"]
    return decoder
