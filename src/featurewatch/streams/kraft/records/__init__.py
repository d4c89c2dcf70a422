"""Record batches and metadata records, decoded by Kafka's schemas."""
