"""The partitions of an election: the file of ``kafka-leader-election``, with its errors."""

from pathlib import Path
from typing import Final

from featurewatch.cli.kafka_tools import json_file
from featurewatch.cli.kafka_tools.errors import KafkaToolError
from featurewatch.cli.kafka_tools.java import in_set_order, repeated
from featurewatch.controller.partitions.assignment import TopicPartition

_MAPPING: Final = "com.fasterxml.jackson.databind.JsonMappingException: "
_NO_FILE: Final = "java.io.IOException: "
_EMPTY: Final = "Replica election data is empty"


def read_partitions(path: Path) -> list[TopicPartition]:
    """The partitions of a file; raises `KafkaToolError`."""
    try:
        text = json_file.read_json_file(path)
    except KafkaToolError as error:
        raise KafkaToolError(_NO_FILE + _bare(error), advice=error.advice) from None
    return parse_partitions(text)


def parse_partitions(text: str) -> list[TopicPartition]:
    """The partitions of a text; raises `KafkaToolError`."""
    try:
        document = json_file.parse_json(text) if text else None
    except ValueError as error:
        raise KafkaToolError(_EMPTY, advice=f"the file is not JSON: {error}") from None
    if not text:
        raise KafkaToolError(_EMPTY)
    try:
        whole = json_file.as_object(document)
        if "partitions" not in whole:
            raise KafkaToolError('Replica election data is missing "partitions" field')
        partitions = [_partition(item) for item in json_file.as_array(whole["partitions"])]
    except KafkaToolError as error:
        if error.text == _bare(error):
            raise
        raise KafkaToolError(_MAPPING + _bare(error)) from None
    if doubled := repeated(partitions, in_set_order):
        listed = doubled.replace(",", ", ")
        raise KafkaToolError(f"Replica election data contains duplicate partitions: [{listed}]")
    return partitions


def _partition(item: object) -> TopicPartition:
    entry = json_file.as_object(item)
    topic = json_file.as_text(json_file.field(entry, "topic"))
    return TopicPartition(topic, json_file.as_integer(json_file.field(entry, "partition")))


def _bare(error: KafkaToolError) -> str:
    return error.text.removeprefix("Error: ")
