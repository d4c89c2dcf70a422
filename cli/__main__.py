"""``python -m cli``, and the command ``featurewatch``."""

import sys

from cli.shortcut import describes


def main() -> None:
    """Runs the command; see `cli.main.main`."""
    if not describes(sys.argv[1:]):
        from cli.main import main as whole

        whole()


if __name__ == "__main__":
    main()
