"""The way to a provider as the environment makes it: its host, and the proxy before it."""

from __future__ import annotations

import urllib.request
from urllib.parse import urlsplit

from sam2_mcp_worker.errors import WorkerError


def way_to(base_url: str) -> str:
    """The host, and the proxy before it, without the name and password that the proxy's address may hold."""
    address = urlsplit(base_url)
    host = str(address.hostname)
    proxies = urllib.request.getproxies()
    proxy = proxies.get(address.scheme) or proxies.get("all")
    if not proxy or urllib.request.proxy_bypass(host):
        return host
    through = urlsplit(proxy)
    return f"{host} through the proxy {through.hostname}{f':{through.port}' if through.port else ''}"


def with_way(trouble: WorkerError, base_url: str) -> WorkerError:
    """The same error, saying where it was met; an address that is none leads nowhere."""
    try:
        if not urlsplit(base_url).hostname:
            return trouble
    except ValueError:
        return trouble
    what = f"{trouble.what} (at {way_to(base_url)})"
    return WorkerError(trouble.code, what, rule=trouble.rule, next_step=trouble.next_step)


def spent_today(today: dict[str, float]) -> str:
    """The day's costs beside their cap."""
    return f"{today['usd']:.4f} of {today['cap_usd']:.2f} US dollars spent today"
