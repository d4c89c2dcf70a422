"""The invocations of ``kafka-reassign-partitions`` that change nothing, and their files."""

from pathlib import Path

TOPIC = "refused"
ENTRY = '{"topic":"refused","partition":0,"replicas":[1,2]}'
FILES = {
    "as-it-is": f'{{"version":1,"partitions":[{ENTRY}]}}',
    "both": f'{{"partitions":[{{"topic":"refused","partition":1,"replicas":[3,1]}},{ENTRY}]}}',
    "elsewhere": '{"partitions":[{"topic":"refused","partition":0,"replicas":[2,3]}]}',
    "unknown-broker": '{"partitions":[{"topic":"refused","partition":0,"replicas":[2,17,9]}]}',
    "unknown-topic": '{"partitions":[{"topic":"nowhere","partition":0,"replicas":[2]}]}',
    "unknown-topics": '{"partitions":[{"topic":"nowhere","partition":0,"replicas":[2]},'
    '{"topic":"never","partition":3,"replicas":[1]}]}',
    "unknown-partition": '{"partitions":[{"topic":"refused","partition":9,"replicas":[2]},'
    '{"topic":"refused","partition":17,"replicas":[1]}]}',
    "bad-name": '{"partitions":[{"topic":"a b","partition":0,"replicas":[2]}]}',
    "none": '{"version":1,"partitions":[]}',
    "no-key": "{}",
    "version": '{"version":2,"partitions":[]}',
    "version-text": '{"version":"1","partitions":[]}',
    "array": "[1, 2]",
    "text": '"abc"',
    "blank": "  \n",
    "empty": "",
    "no-array": '{"partitions":{"a":1.5}}',
    "no-object": '{"partitions":[null]}',
    "no-topic": '{"partitions":[{"partition":0,"replicas":[1]}]}',
    "no-replicas": '{"partitions":[{"topic":"refused","partition":0}]}',
    "number-topic": '{"partitions":[{"topic":1,"partition":0,"replicas":[1]}]}',
    "text-partition": '{"partitions":[{"topic":"refused","partition":"0","replicas":[1]}]}',
    "large-partition": '{"partitions":[{"topic":"x","partition":3000000000,"replicas":[1]}]}',
    "text-replicas": '{"partitions":[{"topic":"refused","partition":0,"replicas":["1"]}]}',
    "object-replicas": '{"partitions":[{"topic":"refused","partition":0,"replicas":{"a":[]}}]}',
    "no-broker": '{"partitions":[{"topic":"refused","partition":0,"replicas":[]}]}',
    "same-broker": '{"partitions":[{"topic":"refused","partition":0,"replicas":[2,1,2,1]},'
    '{"topic":"refused","partition":1,"replicas":[3,3]}]}',
    "doubled": f'{{"partitions":[{ENTRY},{ENTRY},{{"topic":"other","partition":4,"replicas":[1]}},'
    '{"topic":"other","partition":4,"replicas":[1]}]}',
    "directories": '{"partitions":[{"topic":"refused","partition":0,"replicas":[1,2],'
    '"log_dirs":["any"]}]}',
    "no-directory": '{"partitions":[{"topic":"refused","partition":0,"replicas":[1,2],'
    '"log_dirs":["any","/no/such"]}]}',
}
TOPICS = {
    "topic": '{"version":1,"topics":[{"topic":"refused"}]}',
    "topics-doubled": '{"topics":[{"topic":"a"},{"topic":"b"},{"topic":"a"},{"topic":"b"}]}',
    "topics-unknown": '{"topics":[{"topic":"nowhere"}]}',
    "topics-none": '{"topics":[]}',
    "topics-version": '{"version":3}',
    "topics-broken": '{"topics":',
    "topics-form": '{"topics":[{"name":"a"}]}',
}
FILE = "--reassignment-json-file"
OF_TOPICS = "--topics-to-move-json-file"
# These change nothing but throttles, which are not set.
EXECUTED = (*(name for name in FILES if name not in ("as-it-is", "both", "elsewhere")), "absent")
EXECUTE_NOT = ("no-directory",)
# For a broker that is not there Kafka's tool waits a minute, to take its throttle away. Of several
# topics that there are not, the cluster names any first.
NOT_VERIFIED = ("unknown-broker", "unknown-topics")
VERIFIED = (*(name for name in FILES if name not in NOT_VERIFIED), "absent")
CANCELLED = ("as-it-is", "both", "none", "doubled", "unknown-topic", "no-topic", "absent")
GENERATED = (
    ("topic", "1"),
    ("topic", "1,2,1,2"),
    ("topic", "1,x"),
    ("topic", "7"),
    ("topics-doubled", "1"),
    ("topics-unknown", "1"),
    ("topics-none", "1"),
    ("topics-version", "1"),
    ("topics-broken", "1"),
    ("topics-form", "1"),
)


def invocations(files: Path) -> list[tuple[str, ...]]:
    """An action, and its options."""
    found: list[tuple[str, ...]] = [("list",)]
    found += [("verify", FILE, str(files / name)) for name in VERIFIED]
    found += [("execute", FILE, str(files / name)) for name in EXECUTED if name not in EXECUTE_NOT]
    found += [("cancel", FILE, str(files / name)) for name in CANCELLED]
    found += [("cancel", FILE, str(files / "none"), "--preserve-throttles")]
    found += [("verify", FILE, str(files / "both"), "--preserve-throttles")]
    found += [
        ("generate", OF_TOPICS, str(files / name), "--broker-list", brokers)
        for name, brokers in GENERATED
    ]
    found += [(action,) for action in ("execute", "verify", "cancel", "generate")]
    found += [("generate", OF_TOPICS, str(files / "topic"))]
    return found
