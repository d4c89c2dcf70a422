"""Rehearsals of operations: partitions that lose their leader, are elected, created or moved.

`state` has the partitions between two steps, `operations` the operations as values, `kraft` and
`zookeeper` what the two kinds of controllers do in them, `impact` what became of the partitions.
Pure; every decision is one of `controller.partitions`.
"""
