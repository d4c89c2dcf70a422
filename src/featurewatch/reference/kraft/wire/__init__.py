"""The requests of Raft on Kafka's wire: the messages, the listener, and the peers of a node."""
