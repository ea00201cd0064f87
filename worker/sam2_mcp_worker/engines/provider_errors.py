"""Why a provider on the network gave nothing: typed, so that callers decide by kind, whatever the provider does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Generic, Literal, TypeVar

from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.engines.retry import How
from sam2_mcp_worker.errors import WorkerError

Kind = Literal[
    "auth",  # key missing, wrong or without permission
    "cap",  # the operator's daily limit of cost
    "credit",  # the account has none
    "gateway",  # it does not understand our requests, or is no such API at all
    "unreachable",  # no connection to the provider
    "model",  # the provider does not know the model
    "overloaded",  # 429, 529 and 5xx, and a wait that does not fit
    "refused",  # it declined this input
    "too_large",  # it declined the request for its size
    "timeout",  # nothing usable before the deadline
    "no_answer",  # an answer that nothing can be read from
]
# Another input fares no better, so asking is useless for a while.
WHOLE_PROVIDER: frozenset[Kind] = frozenset({"auth", "cap", "credit", "gateway", "unreachable", "model"})


class ProviderError(WorkerError):
    """A WorkerError with its `kind`; its code is the family's name plus the kind."""

    family: ClassVar[str] = "provider"

    def __init__(self, kind: Kind, what: str, *, rule: str = "", next_step: str = "", private: str = "") -> None:
        super().__init__(f"{self.family}_{kind}", what, rule=rule, next_step=next_step, private=private)
        self.kind = kind


Error = TypeVar("Error", bound=ProviderError)


@dataclass(frozen=True)  # with slots Python 3.11 cannot call it by the name of a type it is made for
class Failure(Generic[Error]):
    """`error` for the agent; `retry`: the same request may succeed, after `asked_s` if the server said so.

    `plainer`: leaving out what older gateways do not know may help. `how` far the request came tells how often it is
    tried again, and what it cost. `limits_rate`: it says the same of every request to that model.
    """

    error: Error
    retry: bool = False
    asked_s: float | None = None
    plainer: bool = False
    how: How = "busy"
    limits_rate: bool = False


def does_not_fit(error: Error, asked_s: float | None, until: Deadline) -> Error:
    """Say how long the server asks for where that is the reason."""
    if asked_s is None:
        return error
    return type(error)(
        error.kind,
        f"{error.what} and asks to wait {asked_s:.0f} s; {until.remaining_s():.1f} s are left",
        next_step=f"call again in {asked_s:.0f} s",
        private=error.private,
    )
