"""check_phrases on a real worker: how large and how clear a phrase is, and what its file is made of."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import RunningWorker
from tests.e2e.tools import Agent
from tests.fakes.advertisements import LIMIT, TERMS
from tests.fakes.measured_documents import Drawn

PALE = (170, 170, 170)


def leaflet(path: Path) -> Path:
    """A faint notice of 5 pt that the law asks for, one that is small and then clear, a font that is not inside."""
    drawn = Drawn().page(420, 300).text(30, 60, 20, "든든 건강보험")
    drawn.text(30, 120, 5, TERMS, PALE).text(30, 150, 5, LIMIT, PALE).text(30, 180, 10, LIMIT)
    drawn.pdf.set_font("helvetica", "", 12)
    drawn.pdf.text(30, 240, "Call us today")
    return drawn.save(path).path


async def test_the_pack_tells_small_and_faint_phrases_and_fonts_that_are_missing(
    worker: RunningWorker, tmp_path: Path
) -> None:
    agent = Agent(worker)
    handle = await agent.upload(leaflet(tmp_path / "leaflet.pdf"))
    result = (await agent.follow("check_phrases", source=handle))[-1]
    by_rule = {row["rule"]: row for row in result["rules"]}
    small, faint, font = (
        by_rule[rule] for rule in ("text.min_height_pt", "contrast.min_ratio", "files.fonts_embedded")
    )
    assert (small["verdict"], small["measured"], small["limit"], small["unit"]) == ("not_met", 5.0, 6.0, "pt")
    assert faint["verdict"] == "not_met" and 2.0 < faint["measured"] < 2.6
    assert small["what"].startswith("read_terms: 5.0 pt") and faint["page_number"] == 1
    assert font["verdict"] == "not_met" and font["what"] == "not embedded: Helvetica"
    assert {row["basis"] for row in (small, faint, font)} == {"house"}
    assert result["findings"]["text_too_small"]["not_met"] == 1
    assert result["label"] in ("conditional", "reject")


async def test_phrases_of_the_call_are_told_with_their_size_and_contrast_and_no_rule(
    worker: RunningWorker, tmp_path: Path
) -> None:
    agent = Agent(worker)
    handle = await agent.upload(leaflet(tmp_path / "leaflet.pdf"))
    result = (await agent.follow("check_phrases", source=handle, phrases=[TERMS, LIMIT]))[-1]
    terms, limit = result["phrases"]
    assert (terms["text_height_pt"], limit["text_height_pt"]) == (5.0, 10.0)
    assert (limit["share_of_largest"], limit["further_places"]) == (0.5, 1)
    assert terms["contrast"][1] < 2.6 and limit["contrast"][0] > 15
    assert not result.get("rules")
