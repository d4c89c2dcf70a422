"""Describes the metadata quorum of real clusters, and changes who votes in it (KIP-595, KIP-853).

`admin.quorum.client.QuorumAdmin` is the client; `admin.quorum.checks` judges a change before it is
sent.
"""
