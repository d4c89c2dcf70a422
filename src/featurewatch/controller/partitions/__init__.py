"""The rules of controllers for partitions and replicas: states, elections, placement.

`states` has the states and their valid transitions, `selectors` the leader selectors of ZooKeeper
mode, `assignment` a replica list that is being changed, `placement` the choice of brokers for new
partitions and `striped_placement` that of KRaft mode, `topic_names` which topics may be created,
`kraft_reassignment` how a KRaft reassignment begins, `kraft_election` the record that a KRaft
controller writes when a partition changes, and `kraft_invariants` what must hold for every such
record.

Each rule is here once, and all callers use the same function. Where the document Kafka
Controller Internals and released Kafka differ, each has its own table or dialect.
"""
