"""The requests of the admin clients and their responses, each in one version.

In the layout of `kafka.messages.api_versions`. A request names the class of its response.
"""
