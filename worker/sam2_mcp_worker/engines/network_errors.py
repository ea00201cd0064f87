"""What an exception of the HTTP client says about the network, for whichever provider it was that was asked.

Foreign messages are never shown to agents and only in part to the log: a gateway may echo the input or the key.
"""

from __future__ import annotations

import re
import socket
import ssl

import httpx2

# Enough to recognise a message by, too little to hold a picture or a page of text.
LOGGED_CHARS = 200
# The request never reached the provider.
NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError)


def network_reason(error: BaseException) -> str:
    """Name resolution, certificate, proxy or plain refusal: what the operator must look at."""
    if isinstance(error, httpx2.ProxyError):
        return f"the proxy refused it ({scrub(str(error), '')[:60]})"
    if isinstance(error, httpx2.TimeoutException):
        return "nothing answered in time"
    chain = _causes(error)
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in chain):
        return "its certificate is not trusted (SSL_CERT_FILE names further authorities)"
    if any(isinstance(cause, ssl.SSLError) for cause in chain):
        return "TLS failed"
    if any(isinstance(cause, socket.gaierror) for cause in chain):
        return "its name cannot be resolved"
    return "the connection was refused or broke off"


def may_open(error: BaseException) -> bool:
    """Whether a moment later may be better: not for names, certificates and proxies, nor where nothing answered."""
    if isinstance(error, httpx2.ProxyError | httpx2.TimeoutException):
        return False
    return not any(isinstance(cause, ssl.SSLError | socket.gaierror) for cause in _causes(error))


def _causes(error: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in found:
        found.append(current)
        current = current.__cause__ or current.__context__
    return found


def scrub(text: str, secret: str) -> str:
    """The beginning of a foreign message, without the key and without anything that could be an encoded file."""
    if secret:
        text = text.replace(secret, "***")
    text = re.sub(r"[A-Za-z0-9+/=_-]{40,}", "***", text)
    return " ".join(text.split())[:LOGGED_CHARS]
