"""Writes PDFs with pikepdf: exactly the structure that a case needs, and what in it must be gone after redaction."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pikepdf import Array, Dictionary, Name, Pdf

WIDTH, HEIGHT = 400, 500
SECRET = "Zanzibar"
SECRET_KO = "김철수"
KEPT = "Public"
# Where `secret_line` writes; the box is in displayed points, origin top left.
BASELINE, LEFT, SIZE = 300, 60, 20
SECRET_BOX = (50.0, HEIGHT - BASELINE - 24.0, 250.0, HEIGHT - BASELINE + 10.0)

Region = tuple[int, float, float, float, float]


@dataclass(slots=True)
class Sample:
    """A PDF; regions as (page, x0, y0, x1, y1); words that may be nowhere afterwards and others that must be there.

    `rasterised` says that a page must end up as a picture of itself; `reach_pt` how far what goes as a whole, such as a
    letter, may reach out of the regions.
    """

    data: bytes
    regions: list[Region] = field(default_factory=lambda: [(1, *SECRET_BOX)])
    gone: Sequence[str] = (SECRET,)
    kept: Sequence[str] = (KEPT,)
    password: str = ""
    rasterised: bool = False
    reach_pt: float = 0.0


class Desk:
    """A document in the making."""

    def __init__(self) -> None:
        self.pdf = Pdf.new()
        self.font = self.pdf.make_indirect(Dictionary(Type=Name.Font, Subtype=Name.Type1, BaseFont=Name.Helvetica))

    def stream(self, data: bytes | str, **entries: Any) -> Any:
        return self.pdf.make_stream(data.encode("latin-1") if isinstance(data, str) else data, **entries)

    def form(self, data: bytes | str, resources: dict[str, Any] | None = None, **entries: Any) -> Any:
        return self.stream(
            data, Type=Name.XObject, Subtype=Name.Form, BBox=Array([0, 0, WIDTH, HEIGHT]),
            Resources=self.resources(**(resources or {})), **entries,
        )  # fmt: skip

    def resources(self, **more: Any) -> Dictionary:
        fonts = {"F": self.font} | more.pop("Font", {})
        return Dictionary(Font=Dictionary(**fonts), **{key: Dictionary(**value) for key, value in more.items()})

    def page(self, content: bytes | str, *, size: tuple[float, float] = (WIDTH, HEIGHT), **resources: Any) -> Any:
        page = self.pdf.add_blank_page(page_size=size)
        page.obj.Contents = self.stream(content)
        page.obj.Resources = self.resources(**resources)
        return page.obj

    def save(self, **options: Any) -> bytes:
        out = io.BytesIO()
        self.pdf.save(out, **options)
        return out.getvalue()


def show(text: str, x: float = LEFT, y: float = BASELINE, size: float = SIZE, before: str = "") -> str:
    """A line of text."""
    return f"BT {before} /F {size} Tf 1 0 0 1 {x} {y} Tm ({text}) Tj ET\n"


def kept_line() -> str:
    """A line outside of every region."""
    return show(KEPT, LEFT, 420)


def one_page(content: str, **resources: Any) -> bytes:
    """One page with the kept line and this content."""
    desk = Desk()
    desk.page(kept_line() + content, **resources)
    return desk.save()
