"""A reference of KRaft's metadata quorum: an executable specification, not for production.

`machines` holds the logic, without input or output. `storage` is the log on disk in Kafka's own
format, `node` an asyncio shell that serves and sends the requests of Raft.
"""
