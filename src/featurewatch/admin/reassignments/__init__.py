"""Moves the replicas of partitions on real clusters, and follows the moves until they are done.

`admin.reassignments.client.ReassignmentAdmin` is the client; its values are in `types`, the
requests in `messages`, what a throttle is made of in `throttles`.
"""
