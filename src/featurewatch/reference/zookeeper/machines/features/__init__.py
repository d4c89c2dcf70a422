"""Decides on updates of finalized features, and writes them, for the reference controller."""
