"""What a call cost, as `_meta` of its result: for programs and people that count, not for the model.

Told once: a repeated call, which is served from what was read before, tells 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sam2_mcp_worker.services import Services
from sam2_mcp_worker.spending import Unit, Usage

USAGE_KEY = "sam2-mcp/usage"
# A fast request may cost a hundredth of a cent.
USD_DIGITS = 6


def usage_meta(services: Services, spent: Mapping[int, Usage], unit: Unit) -> dict[str, Any] | None:
    """`{"sam2-mcp/usage": {requests, input_tokens, output_tokens, usd, per_tile or per_page .., usd_today, cap_usd}}`.

    `per_...` holds the numbers of those that cost something, each with its own sums. None where nothing can cost money.
    What the call cost is kept for get_status, too.
    """
    today = _today(services, unit)
    if today is None:
        return None
    if spent:
        services.recent_costs.append((unit, len(spent), sum(spent.values(), Usage())))
    units = {str(number): usage_json(usage) for number, usage in sorted(spent.items())}
    total = usage_json(sum(spent.values(), Usage()))
    return {USAGE_KEY: {**total, f"per_{unit}": units, "usd_today": today["usd"], "cap_usd": today["cap_usd"]}}


def joined_usage(services: Services, costs: Sequence[tuple[Mapping[int, Usage], Unit]]) -> dict[str, Any] | None:
    """The same of a call that several providers worked for: sums of all, and each unit's own numbers."""
    told = [meta[USAGE_KEY] for spent, unit in costs if (meta := usage_meta(services, spent, unit)) is not None]
    if not told:
        return None
    joined: dict[str, Any] = {}
    for one in told:
        for name, value in one.items():
            joined[name] = value if isinstance(value, dict) else joined.get(name, 0) + value
    joined["usd"] = round(joined["usd"], USD_DIGITS)
    return {USAGE_KEY: joined}


def _today(services: Services, unit: Unit) -> dict[str, Any] | None:
    """What the provider of this unit has cost today, and its cap."""
    if unit == "phrase":
        return services.embedder.status()["today"] if services.embedder is not None else None
    if unit != "piece":
        return services.vision.status()["today"] if services.vision is not None else None
    return next((one.status()["today"] for one in services.transcribers if one.costs_money), None)


def usage_json(usage: Usage) -> dict[str, Any]:
    """JSON form."""
    return {
        "requests": usage.requests,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "usd": round(usage.usd, USD_DIGITS),
    }
