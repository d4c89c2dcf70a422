"""Systems of the specification that run, as references and never in production.

`reference.zookeeper` is that of KIP-584, `reference.kraft` the metadata quorum of KRaft.
"""
