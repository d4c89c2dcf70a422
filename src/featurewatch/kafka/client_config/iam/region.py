"""The AWS region of a cluster, which a signature names. Pure."""

import re
from typing import Final

_REGION: Final = re.compile(
    r"(?<![a-z0-9])[a-z]{2,4}(?:-(?:gov|iso[a-z]?|de))?"
    r"-(?:central|north|northeast|northwest|south|southeast|southwest|east|west)-\d(?![0-9])"
)


def region_in(host: str) -> str:
    """The region that a broker's host name contains, or an empty text.

    As ``RegionUtils`` of aws-msk-iam-auth, which knows the regions by name; of several the last,
    which is the one before ``amazonaws.com``.
    """
    found = _REGION.findall(host.lower())
    return found[-1] if found else ""
