"""Fetches each address, and exits with 1 if one does not answer with 200 after several attempts.

Usage: ``python ready.py http://HOST:PORT/readyz ...``.
"""

import ssl
import sys
import time
import urllib.error
import urllib.request

# Only the status of the response counts, so any certificate will do.
_ANY_CERTIFICATE = ssl.create_default_context()
_ANY_CERTIFICATE.check_hostname = False
_ANY_CERTIFICATE.verify_mode = ssl.CERT_NONE


def answer(address: str) -> tuple[bool, str]:
    """Whether the response is 200, and what it says."""
    try:
        # The chart gives addresses with http and https only.
        response = urllib.request.urlopen(address, timeout=5, context=_ANY_CERTIFICATE)  # noqa: S310
        with response:
            return True, response.read(10_000).decode(errors="replace")
    except urllib.error.HTTPError as error:
        return False, error.read(10_000).decode(errors="replace")
    except OSError as error:
        return False, str(error)


def main(addresses: list[str], attempts: int = 30) -> int:
    """Prints a line for each address; a second passes between two attempts."""
    failures = 0
    for address in addresses:
        is_ready, text = answer(address)
        for _ in range(attempts - 1):
            if is_ready:
                break
            time.sleep(1)
            is_ready, text = answer(address)
        failures += not is_ready
        sys.stdout.write(f"{address}: {'ready' if is_ready else text.strip()}\n")
    return min(failures, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
