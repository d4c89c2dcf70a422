"""Text as kafka-dump-log prints it."""

LEVEL = '{"type":"FEATURE_LEVEL_RECORD","version":0,"data":{"name":"a","featureLevel":3}}'
NOOP = '{"type":"NO_OP_RECORD","version":0,"data":{}}'
TOPIC = '{"type":"TOPIC_RECORD","version":0,"data":{"name":"payload: {\\"type\\"","topicId":"x"}}'


def batch(base: int, *lines: str, control: bool = False, valid: bool = True) -> str:
    """A printed batch; a line is the text after a record's own numbers."""
    head = (
        f"baseOffset: {base} lastOffset: {base + len(lines) - 1} count: {len(lines)} "
        "baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1 "
        f"partitionLeaderEpoch: 4 isTransactional: false isControl: {str(control).lower()} "
        "deleteHorizonMs: OptionalLong.empty position: 0 CreateTime: 1700 size: 89 magic: 2 "
        f"compresscodec: none crc: 1 isvalid: {str(valid).lower()}\n"
    )
    record = (
        "| offset: {} CreateTime: 1700 keySize: -1 valueSize: 4 sequence: -1 headerKeys: [] {}\n"
    )
    return head + "".join(record.format(base + at, line) for at, line in enumerate(lines))


def payload(*contents: str) -> list[str]:
    """Lines of data records."""
    return [f"payload: {content}" for content in contents]


PRINTED_LOG = (
    batch(0, "controlType: LEADER_CHANGE(2)", control=True)
    + batch(1, *payload(NOOP, TOPIC, LEVEL))
    + batch(4, *payload(NOOP))
)
