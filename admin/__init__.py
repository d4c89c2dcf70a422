"""Changes to real clusters, which only a person's command makes.

`admin.features.FeatureAdmin` reads and changes the finalized levels of one cluster, in KRaft mode,
in ZooKeeper mode and of the reference system alike; the types that it takes and gives stand in
`admin.updates`, `admin.metadata` and `admin.errors`.
"""
