"""The files of a release of featurewatch: `python -m scripts.releasing`."""
