"""Elects leaders of partitions on real clusters (KIP-460).

`admin.elections.client.ElectionAdmin` is the client.
"""
