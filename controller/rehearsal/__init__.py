"""Rehearsals: what controllers would answer to the steps of an upgrade; pure."""
