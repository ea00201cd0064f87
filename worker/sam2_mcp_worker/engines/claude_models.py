"""What is known about the two models: their settings, prices, and what the provider's models endpoint says of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from sam2_mcp_worker.engines.claude_client import ClaudeClient
from sam2_mcp_worker.engines.vision_errors import VisionError
from sam2_mcp_worker.spending import Usage

# A look-up is a short GET; a worker that starts without a network must not hang on to it.
CHECK_TIMEOUT_S = 10.0
MTOK = 1_000_000
NOT_CHECKED = "not verified yet"
VERIFIED = "verified"


@dataclass(slots=True)
class ModelState:
    """A model by its name, the most tokens it may put out, and prices in US dollars per million (input, output)."""

    model_id: str
    max_tokens: int
    usd_per_mtok: tuple[float, float]
    state: str = NOT_CHECKED

    def priced(self, usage: Usage) -> Usage:
        """The same with its price."""
        price_in, price_out = self.usd_per_mtok
        return replace(usage, usd=(usage.input_tokens * price_in + usage.output_tokens * price_out) / MTOK)

    def worst_usd(self, input_tokens: int) -> float:
        """What a request of this size costs at most."""
        return self.priced(Usage(1, input_tokens, self.max_tokens)).usd

    def told(self, trouble: VisionError | None) -> dict[str, Any]:
        """For get_status."""
        state = self.state if trouble is None else trouble.what
        return {"id": self.model_id, "state": state, "max_output_tokens": self.max_tokens}


async def check_model(client: ClaudeClient, state: ModelState) -> VisionError | None:
    """Ask the models endpoint and note the answer; an error when the model cannot be used.

    An endpoint that does not exist, as with many gateways, or does not answer leaves the model `not verified`.
    """
    info = await client.retrieve(state.model_id, CHECK_TIMEOUT_S)
    if isinstance(info, VisionError):
        state.state = f"not verified: {info.what}"
        return info if info.kind in ("auth", "model", "unreachable") else None
    return judge(info, state)


def judge(info: Any, state: ModelState) -> VisionError | None:
    """Compare what the provider says of the model with what we need."""
    unable = _unable(info)
    if unable:
        state.state = unable
        return VisionError("model", f"the model {state.model_id} cannot be used: {unable}", next_step=_OTHER_MODEL)
    most = getattr(info, "max_tokens", None)
    if isinstance(most, int) and 0 < most < state.max_tokens:
        state.max_tokens = most
    state.state = VERIFIED
    if getattr(info, "lifecycle", None) == "deprecated":
        retires = getattr(info, "retires_at", None)
        state.state += f", deprecated{f', retires {retires:%Y-%m-%d}' if hasattr(retires, 'strftime') else ''}"
    return None


_OTHER_MODEL = "the operator sets SAM2_MCP_CLAUDE_FAST_MODEL or SAM2_MCP_CLAUDE_ACCURATE_MODEL to another"


def _unable(info: Any) -> str:
    if getattr(info, "lifecycle", None) == "retired":
        return "it is retired"
    needs = {"image_input": "it takes no pictures", "structured_outputs": "it knows no structured output"}
    capabilities = getattr(info, "capabilities", None)
    for name, lack in needs.items():
        if getattr(getattr(capabilities, name, None), "supported", None) is False:
            return lack
    return ""
