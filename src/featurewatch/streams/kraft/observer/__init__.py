"""Follows the metadata log over the network as an observer does; pure.

Responses of controllers come in; requests and committed batches go out.
"""
