"""A plain Kafka and ZooKeeper client for the stack, which stands alone."""
