"""Data flow: topics, the events on them, their codecs, and one sub-package per source."""

if (
    __name__ == "streams"
):  # not imported as featurewatch.streams: found by the link at the repository's root
    from featurewatch.common.root_link import import_next

    import_next(__name__, __file__)
