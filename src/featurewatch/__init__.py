"""featurewatch: follows the feature levels of Apache Kafka clusters live."""
