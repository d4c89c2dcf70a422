"""``python -m featurewatch``: the command ``featurewatch``."""

from featurewatch.cli.__main__ import main

if __name__ == "__main__":
    main()
