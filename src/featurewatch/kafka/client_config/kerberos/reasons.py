"""What errors of the Kerberos libraries mean for people."""

from typing import Any, Final, NamedTuple

from featurewatch.common.text import quoted


class Reason(NamedTuple):
    """One line; ``concerns_host``: only the ticket of one server is concerned."""

    text: str
    concerns_host: bool = False


_KEYTAB: Final = "the key in the keytab is not the principal's: export it again (ktadd)"
_CLOCKS: Final = "set the clocks of this machine and the KDC alike (NTP)"
_CACHE: Final = "run kinit, or use a keytab"
_UNKNOWN_SERVER: Final = -1765328377

_ADVICE: Final = {
    -1765328383: "let the realm's administrator extend the principal",  # KDC_ERR_NAME_EXP
    -1765328378: "correct the principal, or let the realm's administrator add it",
    # KDC_ERR_S_PRINCIPAL_UNKNOWN
    _UNKNOWN_SERVER: "compare sasl.kerberos.service.name and the host name with the principal in "
    "the server's keytab, and look at rdns and domain_realm in krb5.conf",
    -1765328372: "the realm's policy refuses it: ask its administrator",  # KDC_ERR_POLICY
    -1765328370: "look at permitted_enctypes in krb5.conf, and export the keytab again (ktadd)",
    -1765328366: "the principal is locked: ask the realm's administrator",  # CLIENT_REVOKED
    -1765328361: "export the keytab again (ktadd)",  # KDC_ERR_KEY_EXP
    -1765328360: _KEYTAB,  # KDC_ERR_PREAUTH_FAILED
    -1765328353: _KEYTAB,  # AP_ERR_BAD_INTEGRITY: of the KDC's answer
    -1765328352: _CLOCKS,  # AP_ERR_TKT_EXPIRED
    -1765328351: _CLOCKS,  # AP_ERR_TKT_NYV
    -1765328347: _CLOCKS,  # AP_ERR_SKEW
    -1765328316: "compare the principal with default_realm in krb5.conf",  # WRONG_REALM
    -1765328249: "install krb5.conf, or set KRB5_CONFIG",  # CONFIG_CANTOPEN
    -1765328248: "correct krb5.conf",  # CONFIG_BADFORMAT
    -1765328243: _CACHE,  # CC_NOTFOUND
    -1765328236: _CLOCKS,  # KDCREP_SKEW
    -1765328230: "add the realm to krb5.conf, or correct the principal",  # REALM_UNKNOWN
    -1765328228: "is a KDC up, and is its address in krb5.conf right?",  # KDC_UNREACH
    -1765328189: _CACHE,  # FCC_NOFILE
    -1765328174: _KEYTAB,  # PREAUTH_FAILED
    -1765328164: "correct the address of the KDC in krb5.conf",  # REALM_CANT_RESOLVE
    -1765328160: "set default_realm in krb5.conf, or write the realm in the principal",
}
"""By the error code of MIT's Kerberos library (``krb5.h``), what to do."""


def reason_of(error: Any) -> Reason:
    """What a ``GSSError`` means."""
    code = _signed(int(error.min_code))
    texts = [_text(status) for status in error.get_all_statuses(error.min_code, False)]
    if code == 0 or not any(texts):
        texts = [_text(status) for status in error.get_all_statuses(error.maj_code, True)]
    text = quoted(" ".join(filter(None, texts)))
    advice = _ADVICE.get(code)
    return Reason(text if advice is None else f"{text}: {advice}", code == _UNKNOWN_SERVER)


def _signed(code: int) -> int:
    """A code of 32 bits as ``krb5.h`` writes it."""
    return code - 2**32 if code >= 2**31 else code


def _text(status: bytes | str) -> str:
    return status if isinstance(status, str) else status.decode(errors="replace")
