"""Why a provider on the network gave nothing: typed, so that callers decide by kind, whatever the provider does."""

from __future__ import annotations

from typing import ClassVar, Literal

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
