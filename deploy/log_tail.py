"""Finds in a program's output the one line that says why it ended."""

import re

_EXCEPTION = re.compile(r"(?:^|[\s:])((?:[a-z]\w*\.)+[A-Z]\w*(?:Exception|Error)(?:: .*)?)$")
_SAID = re.compile(r"\b(?:ERROR|FATAL|error:)\b")


def last_error_line(output: str) -> str:
    """The last exception with a text, else the last line marked as an error, else the last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    exceptions = [match.group(1) for line in lines if (match := _EXCEPTION.search(line))]
    explained = [found for found in exceptions if ": " in found]
    errors = [line for line in lines if _SAID.search(line)]
    plain = [line for line in lines if not line.startswith(("at ", "..."))]
    for candidates in (explained, errors, exceptions, plain):
        if candidates:
            return candidates[-1][:400]
    return "it said nothing"
