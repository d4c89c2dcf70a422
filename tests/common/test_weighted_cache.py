"""A cache that what a peer sends cannot fill beyond its bound."""

from featurewatch.common.weighted_cache import MAX_WEIGHT, weighted_cache


def test_results_are_kept_and_the_weight_is_bounded() -> None:
    """A full cache is emptied; large arguments are never kept."""
    calls = []

    @weighted_cache(len)
    def total(numbers: tuple[int, ...]) -> int:
        """Sums up."""
        calls.append(numbers)
        return sum(numbers)

    assert total.__doc__ == "Sums up."
    assert [total((1, 2)), total((1, 2))] == [3, 3]
    assert calls == [(1, 2)]
    large = (1,) * (MAX_WEIGHT // 100)
    assert [total(large), total(large)] == [MAX_WEIGHT // 100] * 2
    assert calls == [(1, 2), large, large]
    for number in range(2 * MAX_WEIGHT // 10):
        total((number,) * 9)
        assert total.weight <= MAX_WEIGHT
    calls.clear()
    total((1, 2))
    assert calls == [(1, 2)]  # it was forgotten with the others


def test_errors_are_not_kept() -> None:
    """A function that raised is called again."""
    calls = []

    @weighted_cache(lambda _: 1)
    def fail(number: int) -> int:
        calls.append(number)
        raise ValueError(number)

    for _ in range(2):
        try:
            fail(1)
        except ValueError:
            continue
    assert calls == [1, 1]
