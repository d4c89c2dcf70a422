"""Real Kafka and ZooKeeper on this machine: processes, their jars, and the stack's supervisor."""
