"""The ZooKeeper sessions of the reference machines."""
