"""The document that the demo holds the leaflet's figures against: a workbook as an actuary would file it, made up.

One premium in it differs from the leaflet's, so that a check has something to find; the demo says which.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from openpyxl import Workbook

from sam2_mcp_worker.demo.leaflet_copy import COVERS, PREMIUMS, PRODUCT_FULL, REFUNDS

PREMIUM_HEAD = ("가입나이", "기본형 남자", "기본형 여자", "고급형 남자", "고급형 여자")
COVER_HEAD = ("보장", "기본형", "고급형")
REFUND_HEAD = ("경과 기간", "납입 보험료", "해약환급금", "환급률")
# What the leaflet prints, and what was "filed".
PRINTED, FILED = "29,500원", "29,900원"


def write_filed(path: Path) -> str:
    """Write the workbook; what differs from the leaflet, in a sentence."""
    book = Workbook()
    book.remove(book.worksheets[0])
    premiums = [tuple(FILED if cell == PRINTED else cell for cell in row) for row in PREMIUMS]
    _sheet(book, "월 보험료", PREMIUM_HEAD, premiums)
    _sheet(book, "보장 금액", COVER_HEAD, [(name, basic, high) for name, _, basic, high in COVERS])
    _sheet(book, "해약환급금", REFUND_HEAD, REFUNDS)
    book.save(path)
    return f"the leaflet prints {PRINTED} where {FILED} was filed"


def _sheet(book: Workbook, title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    sheet = book.create_sheet(title)
    sheet.append((f"{PRODUCT_FULL} {title}",))
    for row in (head, *rows):
        sheet.append(row)
