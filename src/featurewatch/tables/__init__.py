"""The state of a cluster: the frozen image, its delta, their provenance, and the fold.

``image', delta = fold(image, event)`` is one pure function; the live agents, replay and every other
engine call it. The Faust table that persists the images is defined in `faust_table`.
"""

if (
    __name__ == "tables"
):  # not imported as featurewatch.tables: found by the link at the repository's root
    from featurewatch.common.root_link import import_next

    import_next(__name__, __file__)
