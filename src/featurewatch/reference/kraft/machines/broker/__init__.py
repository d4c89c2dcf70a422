"""The broker's side of a KRaft cluster, in two forms: as released, and as KIP-778 is written. Pure.

A reference, not for production: see `machines`.
"""
