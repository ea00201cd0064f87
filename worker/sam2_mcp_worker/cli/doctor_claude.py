"""What `doctor` finds about Claude: key, models, costs of the day, and the way there. Spends nothing."""

from __future__ import annotations

from sam2_mcp_worker.cli.provider_way import spent_today, way_to, with_way
from sam2_mcp_worker.engines.claude import DEFAULT_ADDRESS, build_claude
from sam2_mcp_worker.engines.vision import NO_KEY, SWITCHED_OFF, choose_vision
from sam2_mcp_worker.settings import Settings


async def claude_finding(settings: Settings) -> str:
    """The state in one line. No key is a state that may be meant; a key that does not work is a failure.

    Raises:
        WorkerError: asking Claude is useless, with the reason and the mend.
    """
    _, missing = choose_vision(settings)
    if missing in (NO_KEY, SWITCHED_OFF):
        return f"off: {missing.public_text}"
    vision, address = build_claude(settings), settings.anthropic_base_url or DEFAULT_ADDRESS
    try:
        vision.check_ledger()
        errors = await vision.check_models()
        trouble = vision.trouble or next(iter(errors), None)
        if trouble is not None:
            raise with_way(trouble, address)
        status = vision.status()
    finally:
        await vision.close()
    models = [f"{model['id']} {model['state']}" for model in status["models"].values()]
    return "; ".join([f"pictures go to {way_to(address)}", *models, spent_today(status["today"])])
