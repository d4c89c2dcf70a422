"""ZooKeeper ensembles as processes of this machine."""
