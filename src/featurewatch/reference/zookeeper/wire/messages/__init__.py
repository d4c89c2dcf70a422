"""The requests between a controller and brokers, in all versions of Kafka 2.7 to 3.9."""
