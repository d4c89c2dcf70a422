"""What is known of a cluster: the frozen image, its delta, where both come from, and the fold.

``image', delta = fold(image, event)`` is one pure function; the live agents, replay and every other
engine call it. The Faust tables that keep images over restarts are defined beside it.
"""
