"""The live worker: the Faust app, one agent for each input topic, timers and metrics."""

if (
    __name__ == "agents"
):  # not imported as featurewatch.agents: found by the link at the repository's root
    from featurewatch.common.root_link import import_next

    import_next(__name__, __file__)
