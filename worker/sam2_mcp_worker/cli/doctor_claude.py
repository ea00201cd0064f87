"""What `doctor` finds about Claude: key, models, costs of the day, and the way there. Spends nothing."""

from __future__ import annotations

import urllib.request
from urllib.parse import urlsplit

from sam2_mcp_worker.engines.claude import DEFAULT_ADDRESS, build_claude
from sam2_mcp_worker.engines.vision import NO_KEY, SWITCHED_OFF, choose_vision
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.settings import Settings


async def claude_finding(settings: Settings) -> str:
    """The state in one line. No key is a state that may be meant; a key that does not work is a failure.

    Raises:
        WorkerError: asking Claude is useless, with the reason and the mend.
    """
    _, missing = choose_vision(settings)
    if missing in (NO_KEY, SWITCHED_OFF):
        return f"off: {missing.public_text}"
    vision = build_claude(settings)
    try:
        vision.check_ledger()
        errors = await vision.check_models()
        trouble = vision.trouble or next(iter(errors), None)
        if trouble is not None:
            raise WorkerError(
                trouble.code, f"{trouble.what} (at {_way(settings)})", rule=trouble.rule, next_step=trouble.next_step
            )
        status = vision.status()
    finally:
        await vision.close()
    models = [f"{model['id']} {model['state']}" for model in status["models"].values()]
    today = status["today"]
    costs = f"{today['usd']:.4f} of {today['cap_usd']:.2f} US dollars spent today"
    return "; ".join([f"pictures go to {_way(settings)}", *models, costs])


def _way(settings: Settings) -> str:
    """The host, and the proxy before it as the environment names one."""
    address = urlsplit(settings.anthropic_base_url or DEFAULT_ADDRESS)
    host = str(address.hostname)
    proxies = urllib.request.getproxies()
    proxy = proxies.get(address.scheme) or proxies.get("all")
    if not proxy or urllib.request.proxy_bypass(host):
        return host
    through = urlsplit(proxy)  # without the name and password that it may hold
    return f"{host} through the proxy {through.hostname}{f':{through.port}' if through.port else ''}"
