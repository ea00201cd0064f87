"""What an OpenAI-compatible API says when it is no success, whichever of its endpoints was asked.

Messages of servers are never shown to agents and only in part to the log: a gateway may echo the key.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from sam2_mcp_worker.engines.provider_errors import Kind
from sam2_mcp_worker.engines.retry import may_retry

# OpenAI answers 429 to an empty account, too; waiting does not fill it.
CREDIT_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})


@dataclass(frozen=True, slots=True)
class Told:
    """What an error answer says: its own code, type and message; all empty where it has another form."""

    code: str = ""
    type: str = ""
    message: str = ""

    @property
    def words(self) -> str:
        """The message, to look for words in."""
        return self.message.lower()


def read_error(body: bytes) -> Told:
    """What the body of an error answer says."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return Told(message=body[:1000].decode("utf-8", "replace"))
    error = data.get("error", data) if isinstance(data, dict) else {}
    if isinstance(error, str):
        return Told(message=error)
    if not isinstance(error, dict):
        return Told()
    message = error.get("message") or error.get("detail") or ""
    return Told(*(str(value or "") for value in (error.get("code"), error.get("type"), message)))


def kind_of(status: int, headers: Mapping[str, str], told: Told, model: str) -> Kind | None:
    """What an answer other than 200 means for any endpoint; None where that depends on what was asked."""
    if status == 402 or {told.code, told.type} & CREDIT_CODES:
        return "credit"
    if may_retry(status, headers):
        return "overloaded"
    if status in (401, 403):
        return "auth"
    if status == 407:
        return "unreachable"
    if told.code == "model_not_found" or (status == 404 and model.lower() in told.words):
        return "model"
    if status == 413 or "maximum content size" in told.words or "too large" in told.words:
        return "too_large"
    return None
