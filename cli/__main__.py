"""``python -m featurewatch``, and the command ``featurewatch``."""

import sys

from featurewatch.cli.fast_describe import run_fast_describe


def main() -> None:
    """Runs the command; see `cli.main.main`."""
    if not run_fast_describe(sys.argv[1:]):
        from featurewatch.cli.main import main as whole

        whole()


if __name__ == "__main__":
    main()
