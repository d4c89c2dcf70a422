"""What a command is told: settings, shared options, Kafka client properties."""
