"""Drops the drawings of annotations that nobody sees: of hidden ones, and for a pressed mouse. Runs in redact children.

Text in them is in no page's text layer and on no rendered page, so nothing that verifies a redaction would meet it.
(Annotations of layers that are off are drawn by pdfium, so they are met.)
"""

from __future__ import annotations

import pikepdf
from pikepdf import Array, Dictionary

# Flags of ISO 32000-1, table 165: Invisible, Hidden, NoView.
_UNSEEN = 0b100011
_ROLLOVER, _DOWN = "/R", "/D"


def drop_unseen_appearances(pdf: pikepdf.Pdf) -> int:
    """Drop them on all pages; returns how many annotations lost one."""
    count = 0
    for page in pdf.pages:
        annotations = page.obj.get("/Annots")
        for entry in annotations if isinstance(annotations, Array) else ():
            count += isinstance(entry, Dictionary) and _drop(entry)
    return count


def _drop(entry: Dictionary) -> bool:
    appearance = entry.get("/AP")
    if not isinstance(appearance, Dictionary):
        return False
    flags = entry.get("/F", 0)
    if isinstance(flags, int) and flags & _UNSEEN:
        del entry["/AP"]
        return True
    unseen = [key for key in (_ROLLOVER, _DOWN) if key in appearance]
    for key in unseen:
        del appearance[key]
    return bool(unseen)
