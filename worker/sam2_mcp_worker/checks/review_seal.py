"""The mark of the review of an advertisement: whether it stands there, tells what it must, and holds on the day.

Owns what follows from the marks that were read (`seal_reading`). Whether a number was really given is not known here. A
mark that was not found is only called missing over a whole reading. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date

from sam2_mcp_worker.checks.findings import Finding, Verdict
from sam2_mcp_worker.checks.phrases import match_phrase, phrase_of
from sam2_mcp_worker.checks.reading import Reading, ReadLine, ReadPage
from sam2_mcp_worker.checks.rule_packs.schema import SealFormat, SealRules
from sam2_mcp_worker.checks.seal_reading import MAX_MARKS, Seal, crowded_pages, seals_of
from sam2_mcp_worker.checks.squeezed import squeeze, squeezed
from sam2_mcp_worker.checks.unread import unread_reason


def seal_findings(rules: SealRules | None, reading: Reading, day: date) -> tuple[Finding, ...]:
    """What is to be said of the marks of a document that runs on this day; nothing without rules."""
    if rules is None:
        return ()
    seals = seals_of(rules.names, reading)
    if not seals:
        return tuple(_without(rules, reading))
    found = [_finding(rules, "seal", "met", f"{seals[0].said} stands there", seals[0])]
    crowded = crowded_pages(rules.names, reading)
    if crowded:
        what = f"page {crowded[0]} has more than {MAX_MARKS} marks; those behind were not looked at"
        found.append(Finding("review_seal", "seal", "cannot_tell", what, rules.basis, page=crowded[0]))
    if rules.format is not None:
        found += _formal(rules.format, seals, day, whole=not crowded)
    return tuple(found)


def _formal(rules: SealFormat, seals: Sequence[Seal], day: date, *, whole: bool) -> Iterator[Finding]:
    if rules.number:
        having = [seal for seal in seals if seal.number]
        yield _told(rules, "seal.number", "its number", having, seals, whole=whole)
    for seal in seals:
        for text in seal.impossible:
            yield _finding(rules, "seal.day", _doubted(seal), f"{seal.said}: there is no such day as {text}", seal)
    if rules.validity:
        having = [seal for seal in seals if seal.until]
        yield _told(rules, "seal.validity", "its last day of validity", having, seals, whole=whole)
    for seal in seals:
        yield from _holding(rules, seal, day)


def _told(
    rules: SealFormat, rule: str, what: str, having: Sequence[Seal], seals: Sequence[Seal], *, whole: bool
) -> Finding:
    if having:
        return _finding(rules, rule, "met", f"{having[0].said} tells {what}", having[0])
    first = seals[0]
    # What OCR did not read may stand there all the same, so may what is written in another form or was not looked at.
    unclear = not whole or first.line.source not in ("text_layer", "text") or any(seal.unclear for seal in seals)
    verdict: Verdict = "review" if unclear else "not_met"
    return _finding(rules, rule, verdict, f"{first.said} does not tell {what} in a form that is known here", first)


def _holding(rules: SealFormat, seal: Seal, day: date) -> Iterator[Finding]:
    """Whether a mark holds on the day; nothing of one that tells no last day."""
    if seal.until is None:
        return
    if seal.until < day:
        what = f"{seal.said} was valid until {seal.until}, before {day}"
        yield _finding(rules, "seal.expiry", _doubted(seal), what, seal)
    elif seal.reviewed is not None and seal.reviewed > day:
        what = f"{seal.said} is of {seal.reviewed}, after {day}"
        yield _finding(rules, "seal.expiry", _doubted(seal), what, seal)
    else:
        yield _finding(rules, "seal.expiry", "met", f"{seal.said} is valid until {seal.until}", seal)
    longest = rules.max_valid_days
    if seal.reviewed is not None and longest is not None and (seal.until - seal.reviewed).days > longest:
        days = (seal.until - seal.reviewed).days
        what = f"{seal.said} is valid for {days} days, from {seal.reviewed} to {seal.until}; at most {longest}"
        yield _finding(rules, "seal.max_valid_days", _doubted(seal), what, seal)


def _doubted(seal: Seal) -> Verdict:
    return "not_met" if seal.sure else "review"


def _without(rules: SealRules, reading: Reading) -> Iterator[Finding]:
    """No mark was read by its name: something like one, none, or not known."""
    if rules.need == "optional":
        return
    for page in reading.pages:
        for name in rules.names:
            match = match_phrase(phrase_of(name), [line.text for line in page.lines])
            if match.state != "absent":
                line = page.lines[match.lines[0]]
                what = f'"{match.read_as}" may be the mark {name}: a person must look'
                yield _at(rules, "seal", "review", what, page.number, line)
                return
        if place := _other_name(rules, page):
            index, ending = place
            what = f'"{ending}" may belong to a mark under another name: a person must look'
            yield _at(rules, "seal", "review", what, page.number, page.lines[index])
            return
    why = unread_reason(reading)
    if why:
        what = f"no mark of a review was found, but {why}"
        yield Finding("review_seal", "seal", "cannot_tell", what, rules.basis)
    else:
        what = f"no mark of a review stands there (looked for: {', '.join(rules.names)})"
        yield Finding("review_seal", "seal", "not_met", what, rules.basis)


def _other_name(rules: SealRules, page: ReadPage) -> tuple[int, str] | None:
    """The line that holds the last word of a name ("심의필") behind another word, and that word."""
    text = squeezed([line.text for line in page.lines])
    for ending in {name.split()[-1]: None for name in rules.names}:
        plain = squeeze(ending)
        at = text.text.find(plain)
        if at >= 0 and not text.cuts(at, at + len(plain)):
            return text.line_of(at), ending
    return None


def _finding(rules: SealRules | SealFormat, rule: str, verdict: Verdict, what: str, seal: Seal) -> Finding:
    return _at(rules, rule, verdict, what, seal.page, seal.line)


def _at(rules: SealRules | SealFormat, rule: str, verdict: Verdict, what: str, page: int, line: ReadLine) -> Finding:
    return Finding(
        kind="review_seal",
        rule=rule,
        verdict=verdict,
        what=what,
        basis=rules.basis,
        page=page,
        box_xyxy=line.box_xyxy,
        start_s=line.start_s,
        end_s=line.end_s,
    )
