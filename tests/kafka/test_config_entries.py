"""Settings are read in a separate loop: the same as by kio's layout, and as safely."""

from collections.abc import Callable

import pytest
from kio.schema.create_topics.v7.response import CreatableTopicConfigs
from kio.schema.describe_configs.v4.response import (
    DescribeConfigsResourceResult,
    DescribeConfigsSynonym,
)
from kio.static.primitive import i8

from featurewatch.kafka.decode import ByteReader, DecodeError
from featurewatch.kafka.messages.config_entries import read_configs, skip_configs
from tests.kafka.kio_messages import written

pytestmark = pytest.mark.form("released")

LONG = "x" * 300
SETTINGS = [
    ("retention.ms", "5", 1, False, ()),
    ("", None, 5, True, ()),
    ("long", LONG, 4, False, (("other", "1"), (LONG, None))),
    (LONG, "", 2, False, (("a", "b"),)),
]


def described() -> bytes:
    """An array of entries of DescribeConfigs."""
    entries = (
        written(
            DescribeConfigsResourceResult(
                name=name,
                value=value,
                read_only=False,
                config_source=i8(source),
                is_sensitive=is_sensitive,
                synonyms=tuple(
                    DescribeConfigsSynonym(name=other, value=text, source=i8(1))
                    for other, text in synonyms
                ),
                config_type=i8(3),
                documentation=None if is_sensitive else name,
            )
        )
        for name, value, source, is_sensitive, synonyms in SETTINGS
    )
    return bytes([len(SETTINGS) + 1]) + b"".join(entries)


def created() -> bytes:
    """An array of entries of CreateTopics."""
    entries = (
        written(
            CreatableTopicConfigs(
                name=name,
                value=value,
                read_only=True,
                config_source=i8(source),
                is_sensitive=is_sensitive,
            )
        )
        for name, value, source, is_sensitive, _ in SETTINGS
    )
    return bytes([len(SETTINGS) + 1]) + b"".join(entries)


def test_settings_are_read() -> None:
    """Names, values, sources (A-18 as released); synonyms and documentation are passed over, what
    follows is left."""
    cursor = ByteReader(described() + b"next")
    values = read_configs(cursor)
    assert [tuple(value) for value in values] == [setting[:4] for setting in SETTINGS]
    assert bytes(cursor.take(cursor.left)) == b"next"


def test_settings_of_created_topics_are_skipped() -> None:
    """What follows is left unread; a missing list counts as empty (KIP-525)."""
    for content in (created(), b"\0", b"\1"):
        cursor = ByteReader(content + b"next")
        skip_configs(cursor)
        assert bytes(cursor.take(cursor.left)) == b"next"


@pytest.mark.parametrize("read", [read_configs, skip_configs])
def test_settings_that_end_too_early_are_an_error(read: Callable[[ByteReader], object]) -> None:
    """At any byte, and with any other byte: read, or refused, never anything else."""
    content = described() if read is read_configs else created()
    for end in range(len(content)):
        with pytest.raises(DecodeError):
            read(ByteReader(content[:end]))
    for position in range(len(content)):
        for other in (0, 1, 0x7F, 0x80, 0xFF):
            changed = content[:position] + bytes([other]) + content[position + 1 :]
            try:
                read(cursor := ByteReader(changed, max_items=50))
            except DecodeError:
                continue
            assert cursor.at <= len(changed)


def test_more_settings_than_may_be_are_refused() -> None:
    """Before they are read."""
    with pytest.raises(DecodeError, match="are allowed"):
        read_configs(ByteReader(described(), max_items=3))
