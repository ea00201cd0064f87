"""Small advertisements whose text is known: PDFs with a Korean text layer, pictures, and a video with sound."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fpdf import FPDF
from PIL import Image, ImageDraw

from sam2_mcp_worker.demo.fonts import find_fonts, load_font

TERMS = "보험계약 체결 전 상품설명서 및 약관을 반드시 확인하시기 바랍니다"
LIMIT = "약관에 따른 지급 제한 사유 발생 시 보험금 지급이 제한될 수 있습니다"
UNLIMITED = "약관에 따른 지급 제한 사유 발생 시 보험금 지급이 제한되지 않습니다"
PROTECTED = "해약환급금에 기타지급금을 합한 금액이 1인당 1억원까지 보호됩니다"
ABSENT = "금융소비자는 해당 상품에 대하여 설명을 받을 권리가 있습니다"
HEADLINE = "오늘이 든든하면 내일이 환해집니다"


def write_pdf(path: Path, pages: Sequence[Sequence[str]], *, size_pt: float = 11.0, password: str = "") -> Path:
    """One page for each list of lines, from the top down."""
    pdf = FPDF(unit="pt", format=(420, 300))
    pdf.set_auto_page_break(False)
    pdf.add_font("Nanum", "", str(find_fonts()["body"]))
    for lines in pages:
        pdf.add_page()
        pdf.set_font("Nanum", size=size_pt)
        for row, line in enumerate(lines):
            pdf.text(30, 50 + 2 * size_pt * row, line)
    if password:
        pdf.set_encryption(owner_password=password + "!", user_password=password)
    pdf.output(str(path))
    return path


def picture(lines: Sequence[str], *, size_px: int = 30) -> Image.Image:
    """Black on white, each line below the other."""
    width = 80 + max(len(line) for line in lines) * size_px
    page = Image.new("RGB", (width, 60 + 2 * size_px * len(lines)), "white")
    pen, font = ImageDraw.Draw(page), load_font(find_fonts()["body"], size_px)
    for row, line in enumerate(lines):
        pen.text((40, 40 + 2 * size_px * row), line, fill="black", font=font)
    return page
