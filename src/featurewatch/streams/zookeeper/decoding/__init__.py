"""Decodes the bytes of znodes."""
