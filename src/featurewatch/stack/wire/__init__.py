"""The stack as a client of Kafka and ZooKeeper: probes, light nodes and znodes."""
