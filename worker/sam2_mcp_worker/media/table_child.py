"""Files of tables inside a child: separated values and workbooks to rows of shown texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media import workbook_child
from sam2_mcp_worker.media.csv_tables import read_separated
from sam2_mcp_worker.media.text_files import decode_text

# A table of 100,000 cells has a tenth of that; the decoded text and its rows take about eight times the bytes.
MAX_TEXT_BYTES = 64 * 2**20


def csv_table(params: dict[str, Any]) -> dict[str, Any]:
    """Task: `path` -> `tables` (one: `sheet` "", `rows`, `first_row`, `doubtful`), `notes`, `unread`.

    Raises:
        WorkerError: not_text, table_empty, table_too_large.
    """
    path = Path(params["path"])
    size = path.stat().st_size
    if size > MAX_TEXT_BYTES:
        raise WorkerError(
            "table_too_large",
            f"the table has {size} bytes",
            rule=f"at most {MAX_TEXT_BYTES} are read",
            next_step="keep the rows that matter and save them as a new file",
        )
    decoded = decode_text(path.read_bytes())
    values = read_separated(decoded.text)
    notes = [] if decoded.encoding == "utf-8" else [f"read as {decoded.encoding.upper()}"]
    table = {"sheet": "", "rows": values.rows, "first_row": values.first_row, "doubtful": []}
    return {"tables": [table], "notes": notes, "unread": values.unread}


TASKS = {"csv_table": csv_table, **workbook_child.TASKS}
