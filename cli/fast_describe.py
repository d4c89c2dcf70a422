"""The one command that is asked for again and again, by scripts and by people who wait.

``features describe`` of a broker without a login is one question and a few lines. It is done here
before anything else is imported; whatever is not just that is left to the command line, which also
says what is wrong.
"""

from collections.abc import Sequence
from typing import Final

_GLANCE_S: Final = 3.0
_NEWEST: Final = "4.3"


def run_fast_describe(arguments: Sequence[str]) -> bool:
    """Whether these were the arguments of that command, and it is done."""
    match list(arguments):
        case ["features", "--bootstrap-server", servers, "describe"]:
            pass
        case ["features", "describe", "--bootstrap-server", servers]:
            pass
        case _:
            return False
    from featurewatch.admin.fast_describe import fast_describe
    from featurewatch.cli.kafka_tool import print_features
    from featurewatch.streams.net.address import parse_addresses

    try:
        addresses = parse_addresses(servers)
    except ValueError:
        return False
    known = fast_describe(addresses[0], None, _GLANCE_S) if addresses else None
    if known is None:
        return False
    print_features(known, _NEWEST)
    return True
