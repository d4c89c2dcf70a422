"""The invocations of ``kafka-leader-election``, and their files."""

from pathlib import Path

TOPIC = "elected"
FILES = {
    "one": '{"partitions":[{"topic":"elected","partition":0}]}',
    "all": '{"partitions":[{"topic":"elected","partition":2},{"topic":"elected","partition":0},'
    '{"topic":"elected","partition":1}]}',
    "some": '{"partitions":[{"topic":"elected","partition":0},{"topic":"elected","partition":7},'
    '{"topic":"nowhere","partition":0}]}',
    "none": '{"partitions":[]}',
    "no-key": "{}",
    "array": "[]",
    "no-array": '{"partitions":1}',
    "no-object": '{"partitions":[2]}',
    "no-partition": '{"partitions":[{"topic":"elected"}]}',
    "text": '{"partitions":[{"topic":"elected","partition":"0"}]}',
    "doubled": '{"partitions":[{"topic":"elected","partition":0},{"topic":"a","partition":3},'
    '{"topic":"elected","partition":0},{"topic":"a","partition":3}]}',
    "broken": '{"partitions":',
    "empty": "",
}


KINDS = ("preferred", "unclean")


def invocations(files: Path, topic: str) -> list[tuple[str, ...]]:
    """The options of each election."""
    return [
        *(("--path-to-json-file", str(files / name)) for name in (*FILES, "absent")),
        (),
        ("--topic", topic),
        ("--partition", "0"),
        ("--all-topic-partitions", "--topic", topic),
        ("--all-topic-partitions", "--partition", "0"),
        ("--topic", topic, "--partition", "1"),
        ("--topic", topic, "--partition", "9"),
        ("--topic", "nowhere", "--partition", "0"),
    ]
