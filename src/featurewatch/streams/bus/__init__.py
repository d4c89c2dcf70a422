"""The bus: the Kafka cluster that featurewatch's own topics are on."""
