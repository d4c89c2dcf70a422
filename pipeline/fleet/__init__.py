"""All clusters of a lake side by side."""
