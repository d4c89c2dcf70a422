"""Real Kafka on this machine, and what is needed to run featurewatch elsewhere."""
