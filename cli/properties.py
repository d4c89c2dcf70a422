"""Java properties files, as far as Kafka's tools are configured by them."""

import re
from pathlib import Path

from cli.errors import UsageError

_LINE = re.compile(r"\s*([^\s=:#!][^\s=:]*)\s*[=:\s]\s*(.*)")


def read_properties(file: Path) -> dict[str, str]:
    """The properties of a file; lines that end in a backslash go on in the next.

    Raises:
        UsageError: The file cannot be read, or a line is no property.
    """
    try:
        text = file.read_text()
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{file} is no properties file: it is not text") from None
    found: dict[str, str] = {}
    for number, line in enumerate(re.sub(r"\\\r?\n\s*", "", text).splitlines(), start=1):
        if not line.strip() or line.lstrip()[0] in "#!":
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise UsageError(f"{file} line {number} is no property: write name=value")
        found[match[1]] = match[2].strip()
    return found
