"""``python -m featurewatch.reference.kraft``: a voter or, as ``light-brokers``, light brokers.

A reference, not for production; see `command` and `light_brokers.command`.
"""

import gc
import sys

_LIGHT_BROKERS = "light-brokers"


def main(arguments: list[str]) -> int:
    """Runs one of the two commands; returns the exit code."""
    # Only the modules of the one that runs are loaded. Their objects live until exit: disable the
    # collector while they load, and freeze them afterwards.
    gc.disable()
    if arguments[:1] == [_LIGHT_BROKERS]:
        from featurewatch.reference.kraft.light_brokers.command import main as run

        arguments = arguments[1:]
    else:
        from featurewatch.reference.kraft.command import main as run
    gc.freeze()
    gc.enable()
    return run(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
