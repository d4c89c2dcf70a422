"""Models Kafka's controller: feature decisions, readiness, rehearsals and alerts. All pure."""
