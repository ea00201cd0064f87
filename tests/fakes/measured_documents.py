"""Documents to measure: what fpdf2 draws and what is known of each line, and a worker that runs in this process."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fpdf import FPDF

from sam2_mcp_worker.checks.reading import Reading, ReadLine, ReadPage
from sam2_mcp_worker.demo.fonts import find_fonts
from sam2_mcp_worker.media import decoder_child, redact_child
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.settings import Settings
from sam2_mcp_worker.uploads import StoredFile

Rgb = tuple[int, int, int]
FACES = find_fonts()
A4 = (595.28, 841.89)
BLACK, WHITE, BLUE = (0, 0, 0), (255, 255, 255), (20, 60, 160)


class OwnProcess:
    """Runs the tasks of children here, so that coverage sees them; parameters and answers travel as JSON as ever."""

    def __init__(self, tasks: dict[str, Callable[[dict[str, Any]], dict[str, Any]]]) -> None:
        self.tasks = tasks
        self.ran: list[str] = []

    async def run(self, task: str, params: dict[str, Any], **_: Any) -> dict[str, Any]:
        self.ran.append(task)
        answer: dict[str, Any] = json.loads(json.dumps(self.tasks[task](json.loads(json.dumps(params)))))
        return answer


def services_here(folder: Path) -> Services:
    """The services of a worker whose decoders and redactors are this process."""
    services = Services(Settings(data_dir=folder))
    services._prepare_folders()
    services.decoders = OwnProcess(decoder_child.TASKS)  # type: ignore[assignment]
    services.redactors = OwnProcess(redact_child.TASKS)  # type: ignore[assignment]
    return services


def stored(path: Path) -> StoredFile:
    """A file as the upload store tells it."""
    data = path.read_bytes()
    return StoredFile("file_" + "0" * 22, path.name, len(data), hashlib.sha256(data).hexdigest(), path)


@dataclass(slots=True)
class Drawn:
    """A PDF in the making; `page` begins a page, `text` writes a line and remembers it."""

    pdf: FPDF = field(default_factory=lambda: FPDF(unit="pt", format=A4))
    sizes: list[tuple[float, float]] = field(default_factory=list)
    lines: list[list[ReadLine]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.pdf.set_auto_page_break(False)

    def page(self, width_pt: float = A4[0], height_pt: float = A4[1]) -> Drawn:
        self.pdf.add_page(format=(width_pt, height_pt))
        self.sizes.append((width_pt, height_pt))
        self.lines.append([])
        return self

    def box(self, x0: float, y0: float, x1: float, y1: float, rgb: Rgb) -> Drawn:
        self.pdf.set_fill_color(*rgb)
        self.pdf.rect(x0, y0, x1 - x0, y1 - y0, "F")
        return self

    def text(self, x: float, y: float, size_pt: float, text: str, rgb: Rgb = BLACK, face: str = "body") -> Drawn:
        """Write with the baseline at y."""
        if face not in self.pdf.fonts:  # reading a face takes half of a test's time
            self.pdf.add_font(face, "", str(FACES[face]))
        self.pdf.set_font(face, "", size_pt)
        self.pdf.set_text_color(*rgb)
        self.pdf.text(x, y, text)
        width = self.pdf.get_string_width(text)
        box = (x, y - 0.85 * size_pt, x + width, y + 0.2 * size_pt)
        self.lines[-1].append(ReadLine(text, "text_layer", box, size_pt))
        return self

    def save(self, path: Path) -> StoredFile:
        self.pdf.output(str(path))
        for font in self.pdf.fonts.values():
            if hasattr(font, "ttfont"):
                font.ttfont.close()
        return stored(path)

    def reading(self) -> Reading:
        pages = zip(self.sizes, self.lines, strict=True)
        return Reading(
            "pdf",
            "pt",
            tuple(ReadPage(i + 1, "done", tuple(lines), size=size) for i, (size, lines) in enumerate(pages)),
        )
