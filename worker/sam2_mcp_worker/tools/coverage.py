"""The part of a result that says what was really read."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field

from sam2_mcp_worker.fanout import Coverage


class CoverageModel(BaseModel):
    """How much of the whole was read. Only what is done may be said to contain or to lack something."""

    total: Annotated[int, Field(description="Pages, tiles of an image, or objects that were asked for")]
    done: Annotated[int, Field(description="How many were read or cut out")]
    failed: Annotated[list[int], Field(description="Numbers of those that could not be read")]
    unreached: Annotated[list[int], Field(description="Numbers of those not reached yet; continue with the cursor")]

    @classmethod
    def of(cls, coverage: Coverage[int, Any]) -> CoverageModel:
        """The model of a pipeline's coverage."""
        return cls(
            total=len(coverage.items),
            done=len(coverage.done),
            failed=sorted(coverage.failed),
            unreached=list(coverage.unreached),
        )
