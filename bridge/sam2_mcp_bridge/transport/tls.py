"""TLS for https addresses: whom to trust, what to show, and what went wrong in words.

Imported for https only: OpenSSL and a list of CAs cost 4 MB, and a bridge over plain http shall not pay for them.
"""

from __future__ import annotations

import ssl
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from sam2_mcp_bridge.config import Config
from sam2_mcp_bridge.errors import EXIT_STARTUP, SetupError

# A list of public CAs is 0.3 MB. What is much larger in a folder of certificates is something else.
MAX_CERTIFICATE_FILE_BYTES = 4 * 2**20

# OpenSSL's verify codes (x509_vfy.h). All others mean that no trusted CA stands behind the certificate.
_NOT_YET_VALID, _EXPIRED, _OTHER_NAME, _OTHER_ADDRESS = 9, 10, 62, 64
_MENDS = {
    _NOT_YET_VALID: "Set the clock of this machine or of the server right",
    _EXPIRED: "Renew the server's certificate, or set the clock of this machine right",
    _OTHER_NAME: "Set SAM2_MCP_URL to a name that the certificate holds",
    _OTHER_ADDRESS: "Set SAM2_MCP_URL to a name that the certificate holds",
}
_MEND_TRUST = "Set SAM2_MCP_CA_FILE of the bridge to the PEM file of the CA that signed it"


class Trouble(NamedTuple):
    """A failed handshake: `code` is one of errors.py, `mend` the first step."""

    code: str
    detail: str
    mend: str


@lru_cache(maxsize=1)  # uploads have a transport of their own with the same settings
def context(config: Config) -> ssl.SSLContext:
    """What every https connection is made with: at least TLS 1.2, names and certificates checked.

    With `ca_file` those CAs and no others are trusted, else the public ones that certifi lists.

    Raises:
        SetupError: a file of the settings cannot be used.
    """
    # Not create_default_context: since Python 3.13 that refuses the certificates of many a company's CA (strict RFC
    # 5280), and the same bridge shall work the same on all of them.
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    if config.ca_file is None:
        import certifi

        _trust(made, certifi.where())
    else:
        made.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # the file may as well hold the server's own certificate
        _trust(made, config.ca_file)
    if config.client_cert is not None:
        _show(made, config.client_cert, config.client_key)
    return made


def trouble(error: BaseException) -> Trouble | None:
    """What TLS has to say about a failed exchange; None where it was not TLS that failed."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLError):
        cause = cause.__cause__ or cause.__context__
    if cause is None:
        return None
    if isinstance(cause, ssl.SSLCertVerificationError):
        return Trouble("certificate", cause.verify_message, _MENDS.get(cause.verify_code, _MEND_TRUST))
    reason = _words(cause)
    # The server's verdict on ours, e.g. tlsv13 alert certificate required, tlsv1 alert unknown ca.
    ours = "alert" in reason and ("certificate" in reason or "unknown ca" in reason)
    return Trouble("client_certificate" if ours else "tls", reason, "")


def _trust(made: ssl.SSLContext, name: str) -> None:
    """Trust the certificates in a file or in the files of a folder."""
    path = Path(name)
    try:
        files = sorted(entry for entry in path.iterdir() if entry.is_file()) if path.is_dir() else [path]
        found = [_trust_file(made, file) for file in files]
    except OSError as error:
        raise SetupError(f"SAM2_MCP_CA_FILE: cannot read {name}: {error.strerror}", EXIT_STARTUP) from error
    if not any(found):
        raise SetupError(f"SAM2_MCP_CA_FILE: {name} holds no certificate in PEM format", EXIT_STARTUP)


def _trust_file(made: ssl.SSLContext, file: Path) -> bool:
    """Trust the certificates in the file; False where it holds none."""
    with file.open("rb") as stream:
        data = stream.read(MAX_CERTIFICATE_FILE_BYTES)
    if b"-----BEGIN CERTIFICATE-----" not in data:
        return False
    try:
        made.load_verify_locations(cadata=data.decode("ascii", "ignore"))  # comments between them may be in any script
    except ssl.SSLError as error:
        raise SetupError(f"SAM2_MCP_CA_FILE: {file} holds a damaged certificate", EXIT_STARTUP) from error
    return True


def _show(made: ssl.SSLContext, cert: str, key: str | None) -> None:
    def no_passphrase() -> str:
        raise SetupError("SAM2_MCP_CLIENT_KEY: the key has a passphrase; give one without", EXIT_STARTUP)

    try:
        # OpenSSL would ask for a passphrase on the terminal, which may be the host's pipe.
        made.load_cert_chain(cert, key, password=no_passphrase)
    except ssl.SSLError as error:
        where = f"{cert} and {key}" if key else cert
        rule = "must hold a certificate and its key in PEM format"
        raise SetupError(f"SAM2_MCP_CLIENT_CERT: {where} {rule} ({_words(error)})", EXIT_STARTUP) from error
    except OSError as error:
        where = f"{cert} or {key}" if key else cert
        raise SetupError(f"SAM2_MCP_CLIENT_CERT: cannot read {where}: {error.strerror}", EXIT_STARTUP) from error


def _words(error: ssl.SSLError) -> str:
    # OpenSSL's name of the reason; some errors are Python's own and have none.
    return (getattr(error, "reason", None) or error.strerror or "no reason given").replace("_", " ").lower()
