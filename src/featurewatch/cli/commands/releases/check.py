"""Compares the decisions of a release with its own controller classes."""

from typing import Any, Final

from featurewatch.common.text import plain, shortened
from featurewatch.controller.kraft.conformance.compare import (
    ChangedClassesError,
    cases,
    differences,
    kinds,
)
from featurewatch.controller.kraft.release_rules import rules_of
from featurewatch.controller.kraft.releases import UnknownReleaseError
from featurewatch.stack.errors import JavaError, StartError
from featurewatch.stack.learning.installed import InstalledKafka
from featurewatch.stack.learning.programs import installed_controller

SHOWN: Final = 20
"""Mismatches that are reported one by one; the count covers all of them."""


def compare(kafka: InstalledKafka, count: int) -> dict[str, Any]:
    """The outcome: counts, or why nothing could be compared (``impossible``).

    ``different`` are the first mismatches, each in one line.
    """
    try:
        rules = rules_of(kafka.minor)
        with installed_controller(kafka) as controller:
            compared = cases(controller, kafka.minor, range(count))
    except UnknownReleaseError:
        return {"impossible": f"the levels of Kafka {kafka.minor} are not known"}
    except ChangedClassesError as error:
        return {"impossible": _changed(kafka, error)}
    except JavaError as error:
        return {"impossible": shortened(plain(error))}
    except StartError as error:
        return {"impossible": _changed(kafka, error)}
    different = [" ".join(plain(text).split()) for text in differences(compared)]
    return {
        "cases": count,
        "mismatches": len(different),
        "answers": dict(kinds(compared).most_common()),
        "rules_of": rules.source,
        "different": different[:SHOWN],
        **({"first_mismatch": shortened(different[0])} if different else {}),
    }


def _changed(kafka: InstalledKafka, error: Exception) -> str:
    return (
        f"the controller classes of Kafka {kafka.release} cannot be asked "
        f"({shortened(plain(error), 200)}): a newer featurewatch may know them"
    )
