"""Rolls: nodes restarted one after the other on another release. Pure."""
