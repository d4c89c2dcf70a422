"""Stores of positions."""

import pytest

from featurewatch.client import FileOffsets, MemoryOffsets, Positions


def test_a_file_has_the_last_positions_of_each_topic(tmp_path):
    """Another object, as after a restart, reads what was saved."""
    path = tmp_path / "offsets.json"
    first, second = Positions("id", {0: 7, 1: 9}, {"cluster": 3}), Positions("", {0: 1})
    store = FileOffsets(path)
    assert store.load("a") is None
    store.save("a", Positions("id", {0: 6}))
    store.save("a", first)
    store.save("b", second)
    assert [FileOffsets(path).load(topic) for topic in "abc"] == [first, second, None]
    assert [each.name for each in tmp_path.iterdir()] == ["offsets.json"]


@pytest.mark.parametrize(
    "text", ["", "[]", '{"a": 1}', '{"a": {"topic_id": "", "offsets": {"x": 1}}}']
)
def test_a_file_that_is_none_of_ours_is_named(tmp_path, text):
    """It is not overwritten."""
    path = tmp_path / "offsets.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"offsets\.json has no offsets that can be read"):
        FileOffsets(path)
    assert path.read_text() == text


def test_memory_keeps_positions():
    """As long as the object lives."""
    store = MemoryOffsets()
    store.save("a", Positions("id", {0: 6}))
    assert (store.load("a"), store.load("b")) == (Positions("id", {0: 6}), None)
