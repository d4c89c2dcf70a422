"""The metadata of a cluster, for controllers and brokers alike (``MetadataImage``). Pure.

There is one state, to which records are applied one after the other (`state`, `replay`), and one
way to write it as the records of a level, in a snapshot and back (`state_records`, `levels`,
`snapshots`).
"""
