"""The history of a cluster as a picture: SVG in a page, or PNG."""
