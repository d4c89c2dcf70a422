"""The state of a cluster: the frozen image, its delta, their provenance, and the fold.

``image', delta = fold(image, event)`` is one pure function; the live agents, replay and every other
engine call it. The Faust table that persists the images is defined in `faust_table`.
"""
