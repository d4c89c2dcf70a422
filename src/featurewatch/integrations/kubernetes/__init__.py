"""Reads Strimzi's resources from the API server of Kubernetes.

The official client is a hundred modules for what is three GET requests here, so these are made with
the standard library.
"""

from featurewatch.integrations.kubernetes.api_server import ApiServer, KubernetesError
from featurewatch.integrations.kubernetes.login import find_api_server
from featurewatch.integrations.kubernetes.resources import strimzi_documents

__all__ = ["ApiServer", "KubernetesError", "find_api_server", "strimzi_documents"]
