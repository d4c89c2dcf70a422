"""Light replicas: brokers that lead and follow partitions without data on a disk."""
