"""Java properties are read as Java reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from featurewatch.common.java_properties import properties_in


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
    """Separators, comments, continued lines, escapes, Latin-1; and no content is an error."""
    assert properties_in(content) == found


@pytest.mark.fuzz
@given(
    st.lists(st.binary(max_size=12) | st.sampled_from(b"\\ = : # ! \n \r \\u00 \\u".split(b" ")))
)
def test_no_content_is_an_error(parts: list[bytes]) -> None:
    """Any content of a file gives names and values, and raises nothing."""
    for name, value in properties_in(b"".join(parts)).items():
        assert type(name) is type(value) is str
