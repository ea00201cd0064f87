"""Key and address of a provider as the operator has set them: whether they can be what they should be."""

from __future__ import annotations

from typing import TypeVar
from urllib.parse import urlsplit

from pydantic import SecretStr

from sam2_mcp_worker.engines.provider_errors import ProviderError

Error = TypeVar("Error", bound=ProviderError)


def checked_key(key: SecretStr, variable: str, *, error: type[Error], meanwhile: str) -> str:
    """The key as it is sent.

    Raises:
        ProviderError: `auth`, it cannot be one; `error` is its type.
    """
    text = key.get_secret_value().strip()
    if not text.isascii() or not text.isprintable() or " " in text:
        raise error(
            "auth",
            f"{variable} holds spaces or characters that no key has",
            next_step=f"the operator copies the key anew and restarts the worker; {meanwhile}",
        )
    return text


def checked_address(address: str, variable: str, *, error: type[Error], meanwhile: str) -> str:
    """The address without spaces around it.

    Raises:
        ProviderError: `gateway`, it is none; `error` is its type.
    """
    address = address.strip()
    try:
        parts = urlsplit(address)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        good = False
    if not good:
        raise error(
            "gateway",
            f"{variable} is no address of the form https://host or http://host:port",
            next_step=f"the operator corrects or unsets it and restarts the worker; {meanwhile}",
        )
    return address
