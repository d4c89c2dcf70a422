"""``python -m cli``, and the command ``featurewatch``."""

import sys

from cli.shortcut import run_fast_describe


def main() -> None:
    """Runs the command; see `cli.main.main`."""
    if not run_fast_describe(sys.argv[1:]):
        from cli.main import main as whole

        whole()


if __name__ == "__main__":
    main()
