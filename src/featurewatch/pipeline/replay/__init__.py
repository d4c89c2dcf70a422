"""Replay: ingests metadata logs, snapshots and support bundles into the lake, offline."""
