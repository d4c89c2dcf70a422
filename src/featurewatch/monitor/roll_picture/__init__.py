"""The picture of a cluster's roll: its nodes over time, levels, alerts, and the way back. Pure."""
