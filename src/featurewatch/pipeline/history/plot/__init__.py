"""Plots the history of a cluster, as an HTML page with SVG or as PNG."""
