"""The minimums of a rule pack held against a document: of pages, of what a video shows, of how a notice is spoken.

Owns which of them a phrase that was found is held against. The measures are those of rule_checks.py, video_findings.py
and checks/spoken.py.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sam2_mcp_worker.checks.findings import Finding
from sam2_mcp_worker.checks.line_groups import best_place
from sam2_mcp_worker.checks.phrase_rules import best_of
from sam2_mcp_worker.checks.rule_packs import RulePack
from sam2_mcp_worker.checks.rule_packs.sections import SpeechRules
from sam2_mcp_worker.checks.speech_rules import speech_findings
from sam2_mcp_worker.checks.spoken import Spoken
from sam2_mcp_worker.pipelines.gathered import Gathered
from sam2_mcp_worker.pipelines.phrase_judging import Judgement
from sam2_mcp_worker.pipelines.rule_checks import RuleChecks
from sam2_mcp_worker.pipelines.video_finding_types import VideoFindings
from sam2_mcp_worker.pipelines.video_rule_findings import video_findings


def minimum_findings(pack: RulePack, judgement: Judgement, checks: RuleChecks, gathered: Gathered) -> list[Finding]:
    """All of them, met ones too."""
    found = list(checks.findings)
    names = {row.became.phrase: row.rule.id for row in judgement.rows if row.rule is not None and row.became.lines}
    if judgement.shown is not None and names:
        found += video_findings(judgement.shown, pack.video, names)
    return found + _spoken(pack, judgement, gathered)


def _spoken(pack: RulePack, judgement: Judgement, gathered: Gathered) -> list[Finding]:
    """How the notices are spoken that were heard, whether they are also on the screen or not."""
    heard = gathered.heard
    if heard is None or heard.transcript is None or pack.speech is None:
        return []
    said = [Spoken(one.start_s, one.end_s, one.text, one.loudness_dbfs) for one in heard.transcript.said]
    of_texts = {one.phrase: one for one in judgement.said if one.lines}
    rules = [row.rule for row in judgement.rows if row.rule is not None and row.rule.channel != "shown"]
    notices = [(rule, one) for rule in rules if (one := best_of(rule, of_texts)) is not None]
    every = {line.index for _, one in notices for line in one.lines}
    whole = heard.reading.whole
    beside = pack.speech.model_copy(update={"while_shown": False})
    found = list(speech_findings(beside, said, every, complete=whole))
    if pack.speech.while_shown and judgement.shown is not None:
        for rule, one in notices:
            found += _while_shown(pack.speech, said, {line.index for line in one.lines}, rule.texts, judgement.shown)
    return found


def _while_shown(
    rules: SpeechRules, said: Sequence[Spoken], notice: Collection[int], wordings: Sequence[str], shown: VideoFindings
) -> list[Finding]:
    """Whether a notice is on the screen meanwhile, in any of its wordings."""
    alone = rules.model_copy(update={"max_rate_ratio": None, "max_quieter_db": None, "min_share": None})
    exposures = [one.exposures for one in shown.phrases if one.phrase in wordings]
    return best_place(finding for one in exposures for finding in speech_findings(alone, said, notice, one))
