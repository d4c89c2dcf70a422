"""The reference system of KIP-584: its controller and brokers, on a real ensemble, over the wire.

What they decide stands in `reference.machines`, without input or output. Here are the shells:
kazoo for ZooKeeper, an asyncio server for Kafka's wire protocol, and clusters of any size.
"""
