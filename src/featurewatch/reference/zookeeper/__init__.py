"""The reference system of KIP-584: its controller and brokers, on a real ZooKeeper ensemble.

`machines` holds the logic, without input or output. The other modules are the shells: kazoo for
ZooKeeper, an asyncio server for Kafka's wire protocol, and clusters of any size.
"""
