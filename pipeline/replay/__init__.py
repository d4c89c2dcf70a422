"""Replay: logs, snapshots and support bundles into the lake, without a cluster."""
