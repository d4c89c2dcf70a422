"""ZooKeeper ensembles that run as processes on this machine."""
