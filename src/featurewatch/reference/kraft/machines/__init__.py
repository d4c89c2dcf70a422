"""The quorum as state machines without input or output; ``README.md`` describes them.

`voter` is the machine; `protocol` has its events and effects, `requests` the requests and responses
of Raft, `log` the log that it replicates.
"""
