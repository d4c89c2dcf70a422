"""Reads that all clients of a cluster share: brokers, topics, reassignments, settings, directories.

The values are in `values` and `configs`, what makes them of responses in `responses`, and the
client that all others build on in `reader`.
"""
