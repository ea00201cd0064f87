"""The demo's last step: phrases and figures of the leaflet judged, the figures against a workbook as filed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from sam2_mcp_worker.demo.session import Say, StationSession, fetch, upload

# Worst first, as a reviewer reads them.
PHRASE_STATES = ("missing", "altered", "review", "cannot_tell", "present")
SHOWN_CHARS = 60


def judge(session: StationSession, worker_url: str, handle: str, filed: Path | None, out_dir: Path, say: Say) -> None:
    """Call check_phrases, and check_figures where there is something filed; results go into the session's result."""
    result = session.result
    facts = session.call_to_the_end("check_phrases", {"source": handle}, ("phrases", "rules"))
    result.phrases, result.rules, result.label = facts["phrases"], facts["rules"], facts["label"]
    counts = Counter(phrase["state"] for phrase in result.phrases)
    told = ", ".join(f"{counts[state]} {state}" for state in PHRASE_STATES if counts[state])
    say(f"check_phrases: {told}; label {result.label}: {'; '.join(facts['because'][:2])}, {result.calls_s[-1]} s")
    if facts.get("report"):
        result.files.append(fetch(worker_url, facts["report"], out_dir / "phrases.html"))
    if filed is None:
        return
    arguments = {"source": handle, "evidence": [upload(worker_url, filed)]}
    facts = session.call_to_the_end("check_figures", arguments, ("figures",))
    result.figures = facts["figures"]
    told = ", ".join(f"{count} {state}" for state, count in facts["counts"].items())
    say(f"check_figures: {told}; label {facts['label']}, {result.calls_s[-1]} s")
    if facts.get("report"):
        result.files.append(fetch(worker_url, facts["report"], out_dir / "figures.html"))


def verdicts(phrases: list[dict[str, Any]], rules: list[dict[str, Any]], figures: list[dict[str, Any]]) -> str:
    """The findings as a table for the terminal: all phrases, what of the rules is not kept, the figures that differ."""
    ordered = sorted(phrases, key=lambda one: PHRASE_STATES.index(one["state"]))
    broken = [rule for rule in rules if rule["verdict"] != "met"]
    differing = [figure for figure in figures if figure["state"] == "mismatch"]
    return "\n".join(
        [
            "state        page  what",
            *(_row(one["state"], one.get("page_number"), one["phrase"], _why(one)) for one in ordered),
            *(_row(one["verdict"], one.get("page_number"), one["what"]) for one in broken),
            *(_row("mismatch", one.get("page"), _named(one), f"filed: {one['evidence']['text']}") for one in differing),
        ]
    )


def _named(figure: dict[str, Any]) -> str:
    return f"{figure.get('label') or ''} {figure['text']}".strip()


def _why(phrase: dict[str, Any]) -> str:
    return "; ".join(phrase.get("differences") or ()) or (phrase.get("reason") or "")


def _row(state: str, page: int | None, what: str, why: str = "") -> str:
    shown = what if len(what) <= SHOWN_CHARS else f"{what[: SHOWN_CHARS - 3]}..."
    return f"{state:11}  {page if page is not None else '-':>4}  {shown}{f'  ({why})' if why else ''}"
