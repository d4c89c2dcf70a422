"""Systems of the specification that run: `reference.zookeeper` is that of KIP-584."""
