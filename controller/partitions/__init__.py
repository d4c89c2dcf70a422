"""The rules of controllers for partitions and replicas: states, elections, placement.

`states` has the states and their valid transitions, `selectors` the leader selectors of ZooKeeper
mode, `assignment` a replica list that is being changed, `placement` the choice of brokers for new
partitions, and `kraft_election` the elections and the completion of reassignments in KRaft mode.
A rule stands here once: the reference controller, the checks of real clusters and the rehearsal
call the same function. Where the document Kafka Controller Internals and released Kafka differ,
each has its own table or dialect.
"""
