"""Follows what was lost: topics made anew, and requests to sources to publish again."""
