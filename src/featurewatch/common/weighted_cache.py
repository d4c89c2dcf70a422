"""A cache of what a pure function returns, bounded by the size of its arguments."""

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Final, Generic, ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")

MAX_WEIGHT: Final = 50_000
"""The weight of all entries of one cache: what a peer sent decides the weight of each."""


class WeightedCache(Generic[_P, _T]):
    """A function that keeps its results by its positional arguments, which must be hashable.

    ``weigh`` gives the weight of an entry, such as the items in its arguments. A full cache is
    emptied. What weighs more than a hundredth of it is not kept, since large arguments are rare
    where they are honest, and would displace all others where they are not.
    """

    def __init__(self, function: Callable[_P, _T], weigh: Callable[..., int]) -> None:
        self._function = function
        self._weigh = weigh
        self._results: dict[tuple[Any, ...], _T] = {}
        self.weight = 0
        update_wrapper(self, function)

    def __call__(self, *arguments: _P.args, **named: _P.kwargs) -> _T:
        """Returns what the function returns; ``named`` must be empty."""
        try:
            return self._results[arguments]
        except KeyError:
            result = self._function(*arguments, **named)
        weight = 1 + self._weigh(*arguments)
        if weight <= MAX_WEIGHT // 100:
            if self.weight + weight > MAX_WEIGHT:
                self.cache_clear()
            self._results[arguments] = result
            self.weight += weight
        return result

    def cache_clear(self) -> None:
        """Forgets all results."""
        self._results.clear()
        self.weight = 0


def weighted_cache(
    weigh: Callable[..., int],
) -> Callable[[Callable[_P, _T]], WeightedCache[_P, _T]]:
    """Returns a decorator that makes a `WeightedCache` of a function."""

    def decorate(function: Callable[_P, _T]) -> WeightedCache[_P, _T]:
        return WeightedCache(function, weigh)

    return decorate
