"""The output of Kafka's own tools, word for word."""
