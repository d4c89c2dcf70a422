"""How the reference controller decides on, and writes, finalized features."""
