"""Checks PromQL expressions against the registries of series."""

import re
from collections.abc import Iterable
from typing import Final

from featurewatch.integrations.series import _METRIC, _STRING, SCRAPE_LABELS, SERIES, names_in

_SELECTED: Final = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
_GROUPED: Final = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)")


def unknown_names(expression: str) -> Iterable[str]:
    """The metrics and labels in a PromQL expression that no registry has, and open brackets.

    This is no parser: it finds names that were changed or misspelt, for which Prometheus would
    give nothing and no error.
    """
    text = _STRING.sub('""', expression)
    names = names_in(expression)
    known = {name: {*SERIES[name].labels, *SCRAPE_LABELS} for name in names if name in SERIES}
    labels = SCRAPE_LABELS.union(*known.values())
    yield from (name for name in names if name not in SERIES)
    for match in _METRIC.finditer(text):
        own = known.get(match.group(1), labels)
        selected = _SELECTED.findall(match.group(2) or "")
        yield from (f"{match.group(1)}{{{label}}}" for label in selected if label not in own)
    for match in _GROUPED.finditer(text):
        grouped = filter(None, re.split(r"[,\s]+", match.group(1)))
        yield from (f"({label})" for label in grouped if label not in labels)
    yield from (pair for pair in ("()", "[]", "{}") if text.count(pair[0]) != text.count(pair[1]))
