"""The metadata controller above a voter: decided requests, replayed records, snapshots. Pure.

A reference, not for production: see `machines`.
"""
