"""Java properties are read as Java reads them."""

import pytest

from featurewatch.streams.java_properties import properties_in


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"a=b", {"a": "b"}),
        (b" a = b \r\nc: d\re f\n\n#g=h\n  ! i=j", {"a": "b", "c": "d", "e": "f"}),
        (rb"id=Mk\=\=", {"id": "Mk=="}),
        (b"id=Mk==\nid=other==", {"id": "other=="}),
        (rb"a\=b\:c\ d=\#e\\", {"a=b:c d": "#e\\"}),
        (b"a=b\\\n   c\\\\\nd=e\\", {"a": "bc\\", "d": "e"}),
        (rb"a=\u00e9\t\u12", {"a": "é\tu12"}),
        (b"a=\xe9\x85\xff\xfe", {"a": "é\x85ÿþ"}),
        (b"a\n=b\n", {"a": "", "": "b"}),
        (b"\xff\xfe\0", {"ÿþ\0": ""}),
        (b"", {}),
    ],
)
def test_properties_are_read_as_java_reads_them(content: bytes, found: dict[str, str]) -> None:
    """Separators, comments, lines that go on, escapes, Latin-1; and no content is an error."""
    assert properties_in(content) == found
