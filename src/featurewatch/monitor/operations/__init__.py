"""What a controller does with partitions, from its log: operations, and whether they are legal."""
