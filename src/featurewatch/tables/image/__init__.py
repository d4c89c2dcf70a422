"""The image of a cluster: frozen, compared by value (Kafka: ``MetadataImage``)."""
