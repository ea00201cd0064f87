"""Why a vision provider gave nothing: typed, so that pipelines decide by kind and agents see it as coverage."""

from __future__ import annotations

from typing import Literal

from sam2_mcp_worker.errors import WorkerError

Kind = Literal[
    "auth",  # key missing, wrong or without permission
    "cap",  # the operator's daily limit of cost
    "credit",  # the account has none
    "gateway",  # it does not understand our requests, or is no Messages API at all
    "unreachable",  # no connection to the provider
    "model",  # the provider does not know the model
    "overloaded",  # 429, 529 and 5xx, and a wait that does not fit
    "refused",  # the model declined this picture
    "too_large",  # the provider declined the request for its size
    "timeout",  # nothing usable before the deadline
    "no_answer",  # an answer that nothing can be read from
]
# Another picture fares no better, so the whole request goes to the local engine.
WHOLE_PROVIDER: frozenset[Kind] = frozenset({"auth", "cap", "credit", "gateway", "unreachable", "model"})
# Only this picture is concerned, and asking again does not help: the local engine reads it instead.
THIS_PICTURE: frozenset[Kind] = frozenset({"refused", "too_large", "no_answer"})


class VisionError(WorkerError):
    """A WorkerError with its `kind`; its code is `vision_` plus the kind."""

    def __init__(self, kind: Kind, what: str, *, rule: str = "", next_step: str = "", private: str = "") -> None:
        super().__init__(f"vision_{kind}", what, rule=rule, next_step=next_step, private=private)
        self.kind = kind

    @property
    def local_reads_on(self) -> bool:
        """Whether the local engine should read this tile now, rather than the provider later."""
        return self.kind in WHOLE_PROVIDER or self.kind in THIS_PICTURE
