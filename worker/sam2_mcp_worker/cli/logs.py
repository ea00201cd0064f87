"""Log lines on stderr, as text or as JSON. No document text, no tokens: what is logged are codes, counts and ids."""

from __future__ import annotations

import json
import logging
import sys


class JsonLines(logging.Formatter):
    """One JSON object per record."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as ASCII JSON."""
        line = {
            "time": self.formatTime(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


def set_up_logging(level: str, *, as_json: bool) -> None:
    """Send all logging to stderr: stdout belongs to results."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        JsonLines() if as_json else logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    )
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # One line per MCP request from these says nothing that the tools' own lines do not.
    for name in ("uvicorn.access", "mcp", "httpx", "httpx2", "sse_starlette"):
        logging.getLogger(name).setLevel(logging.WARNING)
