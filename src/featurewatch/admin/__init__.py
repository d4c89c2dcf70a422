"""Changes to real clusters, which only a person's command makes.

`admin.features.client.FeatureAdmin` reads and changes the finalized levels of one cluster, in KRaft
mode, in ZooKeeper mode and of the reference system alike, and `admin.features.reader.FeatureReader`
only reads them; argument and result types are in `admin.features.updates`,
`admin.features.metadata` and `admin.errors`.
"""
