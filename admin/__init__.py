"""Changes to real clusters, which only a person's command makes.

`admin.features.FeatureAdmin` reads and changes the finalized levels of one cluster, in KRaft mode,
in ZooKeeper mode and of the reference system alike, and `admin.reader.FeatureReader` only reads
them; argument and result types are in `admin.updates`, `admin.metadata` and `admin.errors`.
"""
