"""The iteration order of Java's maps."""

from featurewatch.controller.kraft.map_order import (
    by_id,
    by_name,
    hash_map_order,
    string_hash,
    timeline_map_order,
)


def test_hash_of_strings() -> None:
    """As ``String.hashCode``: signed, and of UTF-16 code units."""
    assert string_hash("Aa") == string_hash("BB") == 2112
    assert string_hash("metadata.version") == 1098778905
    assert string_hash("kraft.version") == -868769006
    assert string_hash("😀") == 31 * 0xD83D + 0xDE00


def test_features_in_a_request() -> None:
    """The order in which a controller processes the features of one request."""
    names = ["streams.version", "metadata.version", "kraft.version", "group.version"]
    expected = ["group.version", "kraft.version", "metadata.version", "streams.version"]
    assert hash_map_order(names) == hash_map_order(reversed(names)) == expected
    assert hash_map_order(["BB", "Aa"]) == ["BB", "Aa"]  # one bucket: as they came


def test_a_copy_may_be_smaller() -> None:
    """Java 19 sizes the table of a copied map differently, which changes its order."""
    names = ["kraft.version", "metadata.version", "transaction.version"]
    before = ["transaction.version", "kraft.version", "metadata.version"]
    after = ["kraft.version", "transaction.version", "metadata.version"]
    orders = [hash_map_order(names, copied_of=3, java=java) for java in (17, 18, 19, 25)]
    assert orders == [before, before, after, after]


def test_nodes_in_the_order_of_a_timeline() -> None:
    """Neither by id nor by age; within a slot the newest comes first."""
    assert by_id([1, 2, 3]) == by_id([3, 2, 1]) == [2, 1, 3]
    assert timeline_map_order(["a", "b"], lambda _: 1) == ["b", "a"]


def test_names_of_results() -> None:
    """By UTF-16 code units, where a surrogate comes before a private character."""
    assert by_name(["b", "", "a"]) == ["", "a", "b"]
    assert by_name(["\ue000", "😀"]) == ["😀", "\ue000"]
