"""Arguments that many tools share, with one wording: what to look at, and how to go on."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

SourceArgument = Annotated[str, Field(description="file_... handle (POST /files), path or https URL")]
CursorArgument = Annotated[str, Field(description="From the result before")]
