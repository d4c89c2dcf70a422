"""The stack of ``featurewatch stack``: its supervisor, its client and its file."""
