"""Rehearsals: how controllers would respond to the steps of an upgrade. Pure."""
