"""The requests of the admin clients and their responses, each in one version.

In the layout of `streams.net.messages`. A request names the class of its response.
"""
