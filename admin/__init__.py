"""Changes to real clusters, which only a person's command makes.

`admin.features.FeatureAdmin` reads and changes the finalized levels of one cluster, in KRaft mode,
in ZooKeeper mode and of the reference system alike; its argument and result types are in
`admin.updates`, `admin.metadata` and `admin.errors`.
"""
