"""Cluster history: states at a moment, differences, moments, and the plot."""
