"""A controller's operations on partitions, from its log, and whether they are legal."""
