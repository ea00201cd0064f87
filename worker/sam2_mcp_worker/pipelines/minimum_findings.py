"""The minimums of a rule pack held against a document: of pages, of what a video shows, of how a notice is spoken.

Owns which of them a phrase that was found is held against. The measures are those of rule_checks.py, video_findings.py
and checks/spoken.py.
"""

from __future__ import annotations

from sam2_mcp_worker.checks.findings import Finding
from sam2_mcp_worker.checks.rule_packs import RulePack
from sam2_mcp_worker.checks.speech_rules import speech_findings
from sam2_mcp_worker.checks.spoken import Spoken
from sam2_mcp_worker.pipelines.gathered import Gathered
from sam2_mcp_worker.pipelines.phrase_judging import Judgement
from sam2_mcp_worker.pipelines.rule_checks import RuleChecks
from sam2_mcp_worker.pipelines.video_rule_findings import video_findings


def minimum_findings(pack: RulePack, judgement: Judgement, checks: RuleChecks, gathered: Gathered) -> list[Finding]:
    """All of them, met ones too."""
    found = list(checks.findings)
    names = {row.became.phrase: row.rule.id for row in judgement.rows if row.rule is not None and row.became.lines}
    if judgement.shown is not None and names:
        found += video_findings(judgement.shown, pack.video, names)
    return found + _spoken(pack, judgement, gathered)


def _spoken(pack: RulePack, judgement: Judgement, gathered: Gathered) -> list[Finding]:
    heard = gathered.heard
    if heard is None or heard.transcript is None or pack.speech is None:
        return []
    said = [Spoken(one.start_s, one.end_s, one.text, one.loudness_dbfs) for one in heard.transcript.said]
    rows = [row for row in judgement.rows if row.became.source == "speech"]
    notice = {line.index for row in rows for line in row.became.lines}
    rules, whole = pack.speech, heard.reading.whole
    found = list(speech_findings(rules.model_copy(update={"while_shown": False}), said, notice, complete=whole))
    if rules.while_shown and judgement.shown is not None:
        only_shown = rules.model_copy(update={"max_rate_ratio": None, "max_quieter_db": None, "min_share": None})
        exposures = {one.phrase: one.exposures for one in judgement.shown.phrases}
        for row in rows:
            indices = {line.index for line in row.became.lines}
            found += speech_findings(only_shown, said, indices, exposures.get(row.became.phrase), complete=whole)
    return found
