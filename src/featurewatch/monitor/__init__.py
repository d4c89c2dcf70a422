"""One pure step from an event to changes, alerts and a snapshot; rules, readiness, rolls."""
