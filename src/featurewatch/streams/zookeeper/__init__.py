"""The ZooKeeper source: the znodes of a cluster in ZooKeeper mode, followed by watches."""
