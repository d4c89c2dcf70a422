"""The live worker: the Faust app, one agent for each input topic, timers and metrics."""
