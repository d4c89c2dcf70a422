"""The certificates of a stack: those that the servers show, and the files of its processes.

The proxy ends TLS before the servers, and wants a certificate from its clients.
"""

from pathlib import Path
from typing import Final, Literal

from featurewatch.common.private_files import write_private
from tests.faults.proxy import Proxy
from tests.faults.servers import TLS_LINK, TLS_QUORUM_LINKS, Certificates

Peer = Literal["bus", "quorum"]
Kind = Literal["authority", "client"]

_LINKS: Final[dict[Peer, tuple[str, ...]]] = {"bus": (TLS_LINK,), "quorum": TLS_QUORUM_LINKS}


class StackCertificates:
    """For each peer, which of two authorities the servers are of, and which their clients are of.

    ``directory`` is that of the stack, where its processes find the files.
    """

    def __init__(self, directory: Path, files: Certificates, proxy: Proxy) -> None:
        self._directory = directory
        self._files = files
        self._proxy = proxy
        self._is_new: dict[tuple[Peer, Kind], bool] = {}
        for peer in _LINKS:
            for kind in ("authority", "client"):
                self._is_new[peer, kind] = False
                self.replace_file(peer, kind)
            self._show(peer)

    def properties(self, peer: Peer) -> dict[str, str]:
        """The client properties that name the files."""
        return {
            "ssl.ca.location": str(self._file(peer, "authority")),
            "ssl.certificate.location": str(self._file(peer, "client")),
        }

    def replace_at_servers(self, peer: Peer, kind: Kind) -> None:
        """The servers, or the clients they accept, are of the other authority from now on."""
        self._is_new[peer, kind] = not self._is_new[peer, kind]
        self._show(peer)

    def replace_file(self, peer: Peer, kind: Kind) -> None:
        """Makes the file of the processes fit the servers, as a mounted secret changes: at once."""
        files, is_new = self._files, self._is_new[peer, kind]
        if kind == "authority":
            content = files.new_authority if is_new else files.authority
        else:
            content = files.new_client if is_new else files.client
        file = self._file(peer, kind)
        replacement = file.with_suffix(".new")
        write_private(replacement, content.read_text())
        replacement.replace(file)

    def _file(self, peer: Peer, kind: Kind) -> Path:
        return self._directory / f"{peer}-{kind}.pem"

    def _show(self, peer: Peer) -> None:
        files = self._files
        shown = files.new_valid if self._is_new[peer, "authority"] else files.valid
        wanted = files.new_authority if self._is_new[peer, "client"] else files.authority
        for link in _LINKS[peer]:
            self._proxy.set_certificate(link, shown, wanted)
