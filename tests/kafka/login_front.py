"""A listener with TLS and SASL before a node that has neither: it ends the login, then passes on.

As with Kafka, ApiVersions is answered before the login, and any other request ends the connection.
"""

import asyncio
import base64
import hashlib
import hmac
import secrets
import ssl
from collections.abc import Callable, Generator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from featurewatch.kafka.decode import read_entity, skip_header
from featurewatch.kafka.messages import (
    Message,
    SaslAuthenticateRequestV0,
    SaslAuthenticateResponseV0,
    SaslAuthenticateResponseV1,
    SaslHandshakeRequestV1,
    SaslHandshakeResponseV1,
)
from featurewatch.reference.zookeeper.wire.frames import write_response

_API_VERSIONS: Final = 18
_SASL_AUTHENTICATION_FAILED: Final = 58
_UNSUPPORTED_SASL_MECHANISM: Final = 33
_ITERATIONS: Final = 4096

Login = Generator[bytes, bytes, None]
"""Is sent the client's messages and yields the responses; raises `ValueError` at a wrong one."""


class Front(NamedTuple):
    """How a front is protected; without ``mechanism`` nobody logs in.

    ``checks`` are further mechanisms, of one message each: a check gives the answer to the
    client's, and raises `ValueError` at a wrong one.
    """

    tls: ssl.SSLContext | None = None
    mechanism: str = ""
    username: str = ""
    password: str = ""
    checks: Mapping[str, Callable[[bytes], bytes]] = MappingProxyType({})

    async def start(self, port: int, own_port: int = 0) -> asyncio.Server:
        """Listens on a port of the loopback interface, before this one; 0: on a free one."""

        async def serve(client: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            node, to_node = await asyncio.open_connection("127.0.0.1", port)
            try:
                if not self.mechanism or await self._log_in(client, writer, node, to_node):
                    await asyncio.gather(
                        _copy(client, to_node), _copy(node, writer), return_exceptions=True
                    )
            except asyncio.IncompleteReadError:
                pass  # the client closed the connection
            finally:
                to_node.close()
                writer.close()

        return await asyncio.start_server(serve, "127.0.0.1", own_port, ssl=self.tls)

    async def _log_in(
        self,
        client: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        node: asyncio.StreamReader,
        to_node: asyncio.StreamWriter,
    ) -> bool:
        """Answers a client until it is logged in; False: it sends something else, or fails."""
        login: Login | None = None
        is_scram = False
        while True:
            frame = await _read_frame(client)
            key, correlation_id = int.from_bytes(frame[:2]), int.from_bytes(frame[4:8])
            response: Message
            if key == _API_VERSIONS:
                to_node.write(len(frame).to_bytes(4) + frame)
                answer = await _read_frame(node)
                writer.write(len(answer).to_bytes(4) + answer)
                continue
            if key == SaslHandshakeRequestV1.__api_key__:
                start = skip_header(frame, 8, flexible=False)
                wanted = read_entity(SaslHandshakeRequestV1, frame, start)[0].mechanism
                is_offered = wanted == self.mechanism or wanted in self.checks
                code = 0 if is_offered else _UNSUPPORTED_SASL_MECHANISM
                login = self._login(wanted)
                is_scram = wanted.startswith("SCRAM")
                next(login)
                response = SaslHandshakeResponseV1(
                    error_code=code, mechanisms=tuple({self.mechanism: None, **self.checks})
                )
                writer.write(write_response(correlation_id, response))
                continue
            if key != SaslAuthenticateRequestV0.__api_key__ or login is None:
                return False
            start = skip_header(frame, 8, flexible=False)
            message = read_entity(SaslAuthenticateRequestV0, frame, start)[0].auth_bytes
            code, text, is_done = 0, None, False
            proof = b""
            try:
                proof = login.send(bytes(message))
                is_done = proof.startswith(b"v=") or not is_scram
            except ValueError:
                code, text = _SASL_AUTHENTICATION_FAILED, "Authentication failed"
            form = SaslAuthenticateResponseV1 if frame[3] else SaslAuthenticateResponseV0
            response = form(error_code=code, error_message=text, auth_bytes=proof)
            writer.write(write_response(correlation_id, response))
            if code or is_done:
                return not code

    def _login(self, mechanism: str) -> Login:
        if mechanism in self.checks:
            return self._checked(self.checks[mechanism])
        return self._plain() if self.mechanism == "PLAIN" else self._scram()

    def _checked(self, check: Callable[[bytes], bytes]) -> Login:
        message = yield b""
        yield check(message)

    def _plain(self) -> Login:
        message = yield b""
        if message != f"\0{self.username}\0{self.password}".encode():
            raise ValueError("wrong user or password")
        yield b""

    def _scram(self) -> Login:
        """The server of RFC 5802, for one user."""
        hash_name = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}[self.mechanism]

        def mac(key: bytes, text: bytes) -> bytes:
            return hmac.digest(key, text, hash_name)

        first = (yield b"").decode().removeprefix("n,,")
        name, nonce = (part[2:] for part in first.split(","))
        salt = secrets.token_bytes(16)
        challenge = (
            f"r={nonce}{secrets.token_urlsafe(12)},s={base64.b64encode(salt).decode()}"
            f",i={_ITERATIONS}"
        )
        final = (yield challenge.encode()).decode()
        bare, _, proof = final.partition(",p=")
        signed = f"{first},{challenge},{bare}".encode()
        salted = hashlib.pbkdf2_hmac(hash_name, self.password.encode(), salt, _ITERATIONS)
        client_key = mac(salted, b"Client Key")
        signature = mac(hashlib.new(hash_name, client_key).digest(), signed)
        expected = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))
        if name != self.username or base64.b64decode(proof) != expected:
            raise ValueError("wrong user or password")
        yield b"v=" + base64.b64encode(mac(mac(salted, b"Server Key"), signed))


async def _read_frame(reader: asyncio.StreamReader) -> bytes:
    return await reader.readexactly(int.from_bytes(await reader.readexactly(4)))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while content := await reader.read(65_536):
        writer.write(content)
        await writer.drain()
    writer.close()
