"""How a mandatory notice is spoken, held against a rule pack: speed, loudness, share, and whether it is shown. Pure.

Owns the verdicts over the measures of spoken.py and exposure.py. Times of engines are exact to about half a second.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sam2_mcp_worker.checks.exposure import Exposures, Stretch, overlap, spoken_while_shown
from sam2_mcp_worker.checks.findings import Finding, Verdict
from sam2_mcp_worker.checks.rule_packs.sections import SpeechRules
from sam2_mcp_worker.checks.spoken import Spoken, compare_spoken

# Both ends of a segment are exact to so much (checks/hearing.py), which makes rates of short notices wide.
TIMES_EXACT_TO_S = 0.5
# Levels of the same speaker on the same microphone differ from sentence to sentence by about so much.
LOUDNESS_UNCERTAINTY_DB = 1.0
# Of the time in which it is spoken, a notice has to be on the screen for this share (checks/exposure.py).
WHILE_SHOWN_SHARE = 0.5


def speech_findings(
    rules: SpeechRules | None,
    said: Sequence[Spoken],
    notice: Collection[int],
    shown: Exposures | None = None,
    *,
    complete: bool = True,
) -> tuple[Finding, ...]:
    """The verdicts over a spoken notice; none where no notice was heard.

    Args:
        said: all speech, in order; `notice` are the indices of what belongs to the notice.
        shown: when the same notice is on the screen; None where there are no pictures.
        complete: whether all speech was heard. Otherwise the rest may be spoken otherwise, and nothing is `met` or
            `not_met` that compares with it.
    """
    notices = [said[index] for index in sorted(set(notice)) if 0 <= index < len(said)]
    if rules is None or not notices:
        return ()
    rest = [one for index, one in enumerate(said) if index not in set(notice)]
    compared = compare_spoken(notices, rest)
    span = Stretch(notices[0].start_s, max(one.end_s for one in notices))
    found: list[Finding] = []
    if rules.max_rate_ratio is not None:
        slack = min(1.0, 2 * TIMES_EXACT_TO_S * len(notices) / max(0.1, sum(one.duration_s for one in notices)))
        ratio = compared.rate_ratio
        off = None if ratio is None else ratio * slack / 2
        what = "spoken {:.2f} times as fast as the rest, at most {:g} times"
        found.append(_most(rules, "max_rate_ratio", ratio, rules.max_rate_ratio, off, what, span, complete))
    if rules.max_quieter_db is not None:
        quieter = None if compared.louder_db is None else -compared.louder_db
        what = "{:.1f} dB quieter than the rest, at most {:g} dB"
        off = LOUDNESS_UNCERTAINTY_DB
        found.append(_most(rules, "max_quieter_db", quieter, rules.max_quieter_db, off, what, span, complete, "dB"))
    if rules.min_share is not None:
        found.append(_share(rules, compared.share, rules.min_share, span, complete))
    if rules.while_shown:
        found.append(_while_shown(rules, shown, notices, span))
    return tuple(found)


def _most(
    rules: SpeechRules,
    field: str,
    measured: float | None,
    limit: float,
    off: float | None,
    what: str,
    span: Stretch,
    complete: bool,
    unit: str = "",
) -> Finding:
    verdict: Verdict
    if measured is None or off is None:
        verdict, told = "cannot_tell", "there is no other speech to compare the notice with, or too little of it"
    else:
        told = "the notice is " + what.format(measured, limit)
        verdict = "met" if measured <= limit else "review" if measured - limit < off else "not_met"
        if not complete:
            verdict, told = "cannot_tell", f"{told}: not all speech was heard"
    return Finding(
        "speech_unbalanced", f"speech.{field}", verdict, told, rules.basis,
        measured=measured, limit=limit, uncertainty=off, unit=unit, start_s=span.start_s, end_s=span.end_s,
    )  # fmt: skip


def _share(rules: SpeechRules, share: float | None, least: float, span: Stretch, complete: bool) -> Finding:
    measured = share or 0.0
    verdict: Verdict = "met" if measured >= least else "not_met"
    if share is None or not complete:
        verdict = "cannot_tell"
    told = f"the notice is {measured:.0%} of the time of all speech, at least {least:.0%}"
    return Finding(
        "speech_unbalanced", "speech.min_share", verdict, told + ("" if complete else ": not all speech was heard"),
        rules.basis, measured=share, limit=least, start_s=span.start_s, end_s=span.end_s,
    )  # fmt: skip


def _while_shown(rules: SpeechRules, shown: Exposures | None, notices: Sequence[Spoken], span: Stretch) -> Finding:
    if shown is None:
        verdict: Verdict = "cannot_tell"
        told, share = "there are no pictures that could show the notice", None
    else:
        verdict = min((_shown_verdict(shown, one) for one in notices), key=_ORDER.index)
        length_s = sum(one.duration_s for one in notices)
        surely_s = sum(overlap(shown, Stretch(one.start_s, one.end_s))[0] for one in notices)
        share = surely_s / length_s if length_s > 0 else None
        told = f"the notice is surely on the screen for {surely_s:.1f} of the {length_s:.1f} s in which it is spoken"
    return Finding(
        "speech_unbalanced", "speech.while_shown", verdict, told, rules.basis,
        measured=share, limit=WHILE_SHOWN_SHARE, start_s=span.start_s, end_s=span.end_s,
    )  # fmt: skip


_ORDER: tuple[Verdict, ...] = ("not_met", "review", "cannot_tell", "met")


def _shown_verdict(shown: Exposures, one: Spoken) -> Verdict:
    return spoken_while_shown(shown, Stretch(one.start_s, one.end_s), WHILE_SHOWN_SHARE)
