"""The argument `mode` of every tool that reads with a vision provider."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from sam2_mcp_worker.pipelines.reading_choice import Mode

ModeArgument = Annotated[Mode, Field(description="Claude model; auto: by the amount of work")]
