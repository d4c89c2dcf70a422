"""The fleet: all clusters of a lake, side by side."""
