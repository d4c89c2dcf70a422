"""What Kafka's controller would say of a cluster, and what follows from it; all of it pure."""
