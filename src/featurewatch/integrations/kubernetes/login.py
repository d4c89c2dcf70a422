"""Finds the API server and the login: a kubeconfig, or the service account of this pod.

Source: Kubernetes, "Organizing Cluster Access Using kubeconfig Files" and "Accessing the Kubernetes
API from a Pod". Programs that a kubeconfig names (``exec``) are not run.
"""

import base64
import binascii
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from featurewatch.common import yaml_file
from featurewatch.common.text import quoted
from featurewatch.integrations.kubernetes.api_server import ApiServer, KubernetesError

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_MAX_BYTES: Final = 1024 * 1024
_BY_FILE: Final = "save the resources with kubectl get kafka,kafkanodepool -o yaml, and pass FILE"
_NOT_USED: Final = ("insecure-skip-tls-verify", "proxy-url", "tls-server-name")
_PLUGINS: Final = ("exec", "auth-provider", "username")


def find_api_server(
    environment: Mapping[str, str],
    kubeconfig: Path | None = None,
    context: str = "",
    namespace: str = "",
    account: Path = SERVICE_ACCOUNT,
) -> ApiServer:
    """The API server and the login of a kubeconfig, else of this pod.

    ``environment`` are the variables of this process; without ``kubeconfig`` the file is that of
    ``KUBECONFIG``, then the pod's account, then ``~/.kube/config``. Empty: ``context`` is the
    current one, ``namespace`` that of the context or of the pod.

    Raises:
        KubernetesError: There is no login, it is not valid, or of a kind that is not used here.
    """
    variable = environment.get("KUBECONFIG")
    named = kubeconfig or (Path(variable) if variable else None)
    if named is None and (account / "token").exists():
        return _of_pod(environment, namespace, account)
    file = named or Path(environment.get("HOME", "/"), ".kube", "config")
    return _of_file(file, context, namespace)


def _of_pod(environment: Mapping[str, str], namespace: str, account: Path) -> ApiServer:
    host = environment.get("KUBERNETES_SERVICE_HOST", "")
    port = environment.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise KubernetesError("KUBERNETES_SERVICE_HOST is not set: pass --kubeconfig FILE")
    host = f"[{host}]" if ":" in host else host
    return ApiServer(
        _address(f"https://{host}:{port}", "KUBERNETES_SERVICE_HOST"),
        namespace or _read(account / "namespace").strip(),
        _read(account / "ca.crt"),
        _token(_read(account / "token"), str(account / "token")),
    )


def _of_file(file: Path, context: str, namespace: str) -> ApiServer:
    try:
        content = yaml_file.parse(_read(file), str(file))
    except yaml_file.YamlError as error:
        raise KubernetesError(str(error)) from None
    chosen = context or _text(content, "current-context")
    if not chosen:
        raise KubernetesError(f"{file} has no current-context: pass --context")
    at = _named(content, "contexts", chosen, "context", file)
    cluster = _named(content, "clusters", _text(at, "cluster"), "cluster", file)
    user = _named(content, "users", _text(at, "user"), "user", file)
    for name in _NOT_USED:
        if _text(cluster, name) not in ("", "false"):
            raise KubernetesError(f"{file}: {name} is not supported here: {_BY_FILE}")
    for name in _PLUGINS:
        if user.get(name):
            raise KubernetesError(f"{file}: a login by {name} is not supported here: {_BY_FILE}")
    token = _text(user, "token")
    if not token and _text(user, "tokenFile"):
        token = _read(file.parent / _text(user, "tokenFile"))
    return ApiServer(
        _address(_text(cluster, "server"), str(file)),
        namespace or _text(at, "namespace") or "default",
        _pem(cluster, "certificate-authority", file),
        _token(token, str(file)),
        _pem(user, "client-certificate", file),
        _pem(user, "client-key", file),
    )


def _address(url: str, source: str) -> str:
    try:
        parts = urlsplit(url)
        valid = parts.scheme == "https" and parts.hostname and parts.port != 0
    except ValueError:
        valid = False
    if not valid or "@" in url:
        raise KubernetesError(f"{source}: the server {quoted(url)} is no https:// address")
    return url.rstrip("/")


def _named(content: Any, section: str, name: str, kind: str, file: Path) -> Mapping[str, Any]:
    """The entry of a section with this name."""
    found = content.get(section) if isinstance(content, Mapping) else None
    for item in found if isinstance(found, list) else ():
        if isinstance(item, Mapping) and item.get("name") == name:
            entry = item.get(kind)
            return entry if isinstance(entry, Mapping) else {}
    raise KubernetesError(f"{file}: there is no {kind} {quoted(name)}")


def _text(content: Any, name: str) -> str:
    value = content.get(name, "") if isinstance(content, Mapping) else ""
    return value if isinstance(value, str) else ""


def _pem(content: Mapping[str, Any], name: str, file: Path) -> str:
    """A certificate or key that is in the file, as base64, or in another one."""
    data = _text(content, f"{name}-data")
    if data:
        try:
            return base64.b64decode(data, validate=True).decode("ascii")
        except (binascii.Error, UnicodeDecodeError):
            raise KubernetesError(f"{file}: {name}-data is not base64 of PEM") from None
    path = _text(content, name)
    return _read(file.parent / path) if path else ""


def _token(text: str, source: str) -> str:
    token = text.strip()
    if not token.isascii() or any(character <= " " for character in token):
        raise KubernetesError(f"{source}: the token has a character that no token has")
    return token


def _read(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            content = opened.read(_MAX_BYTES + 1)
        text = content.decode()
    except OSError as error:
        raise KubernetesError(f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise KubernetesError(f"{file} is not text") from None
    if len(content) > _MAX_BYTES:
        raise KubernetesError(f"{file} has more than 1 MiB")
    return text
