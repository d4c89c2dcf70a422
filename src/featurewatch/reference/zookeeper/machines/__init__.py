"""The system of KIP-584 as state machines without input or output: controller, broker and client.

`dialect` describes the three written forms of KIP-584 as data, `requests` the requests and
responses of clients, `protocol` the events and effects of a machine. `features` decides on updates
and writes them, `encoding` reads and writes the znodes' bytes. `controller` and `broker` are the
machines; `client` is the state of a client.
"""
