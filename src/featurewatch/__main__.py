"""``python -m featurewatch``: the command ``featurewatch``."""

from featurewatch.cli.main import main

if __name__ == "__main__":
    main()
