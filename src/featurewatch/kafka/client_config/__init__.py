"""Client properties, as Kafka's tools and librdkafka take them, for every connection."""
