"""The topics and partitions of a cluster, as its metadata log describes them."""
