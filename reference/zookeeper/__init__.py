"""The reference system's ZooKeeper sessions."""
