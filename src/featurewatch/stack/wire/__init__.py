"""A minimal Kafka and ZooKeeper client for the stack, which imports nothing else of the project."""
