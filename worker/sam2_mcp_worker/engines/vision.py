"""Whether there is a vision provider, and which: chosen from the settings, asked nothing yet."""

from __future__ import annotations

from sam2_mcp_worker.engines.ports import VisionProvider
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.settings import Settings

SWITCHED_OFF = WorkerError(
    "not_available",
    "regions need a vision provider, and it is switched off (SAM2_MCP_VISION=off)",
    next_step="ask the operator to switch it on; texts are read by the local engine meanwhile",
)
NO_KEY = WorkerError(
    "not_available",
    "regions need a vision provider, and none is set up",
    next_step="the operator sets ANTHROPIC_API_KEY (requests then cost money and pictures leave the machine) and "
    "restarts the worker; texts are read by the local engine meanwhile",
)


def choose_vision(settings: Settings) -> tuple[VisionProvider | None, WorkerError | None]:
    """The provider, or why there is none and the mend. Importing its SDK takes a second: call it before serving."""
    if settings.vision == "off":
        return None, SWITCHED_OFF
    key = settings.anthropic_api_key
    if key is None or not key.get_secret_value().strip():
        return None, NO_KEY
    from sam2_mcp_worker.engines.claude import build_claude

    try:
        return build_claude(settings), None
    except WorkerError as error:  # a key or an address that cannot be one must not keep the worker from serving
        return None, error
