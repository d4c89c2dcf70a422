"""The system of KIP-584 as state machines that do no IO: its controller, its brokers, its client.

`dialect` says which of the three written forms of KIP-584 is meant, `requests` what clients ask and
are told, `protocol` how the machines talk with ZooKeeper. `updates` decides, `encoding` knows the
znodes' bytes, `controller` and `broker` are the machines, and `client` is what a client keeps.
"""
