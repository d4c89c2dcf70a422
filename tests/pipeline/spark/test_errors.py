"""What engines say of a failure, in one line."""

from featurewatch.pipeline.errors import one_line, reason_in

TORN = """An error occurred while calling z:io.delta.tables.DeltaTable.isDeltaTable.
: org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file \
file:///lake/gold/epochs/_delta_log/01.json.  SQLSTATE: KD001
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.cannotReadFilesError(Query.scala:856)
Caused by: org.apache.spark.SparkException: [MALFORMED_RECORD_IN_PARSING] Malformed records.
\t... 1 more
Caused by: com.fasterxml.jackson.core.io.JsonEOFException: Unexpected end-of-input: expected close \
marker for Object (start marker at [Source: (byte[])"{"commitInfo":{"operation":"MERGE"; line: 1])
 at [Source: UNKNOWN; line: 1, column: 301]
\tat com.fasterxml.jackson.core.base.ParserMinimalBase._reportInvalidEOF(ParserMinimalBase.java)
"""


def test_the_file_that_could_not_be_read_is_named() -> None:
    """Its content is not: Jackson would quote it."""
    assert reason_in(TORN) == (
        "file:///lake/gold/epochs/_delta_log/01.json cannot be read: "
        "com.fasterxml.jackson.core.io.JsonEOFException: Unexpected end-of-input: expected close "
        "marker for Object"
    )


def test_without_room_it_says_what_to_do() -> None:
    """The innermost reason comes first."""
    text = reason_in("a\nCaused by: b\nCaused by: java.io.IOException: No space left on device\n")
    assert text.startswith("java.io.IOException: No space left on device; make room for the lake")


def test_a_backtrace_of_the_library_is_left_out() -> None:
    """What it says in several lines stays."""
    told = "Json error: cut off\nin a string\n   0: <unknown>\n   1: clone3\n  at ./clone3.S:81:0"
    assert one_line(told) == "Json error: cut off in a string"
    assert one_line("column 0: is missing") == "column 0: is missing"
