"""``python -m featurewatch.cli``, and the command ``featurewatch``."""

from featurewatch.cli.main import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
