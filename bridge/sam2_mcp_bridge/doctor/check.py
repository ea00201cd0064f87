"""`sam2-mcp --check [URL] [--json]`: the doctor of the transport.

Owns the order, the time and the report. Says which stage between here and the server failed, and the mend; stops
there. Writes to standard output, since nobody is served.

Exit codes: 0 every stage passed or did not apply, 1 a stage failed, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from sam2_mcp_bridge import config
from sam2_mcp_bridge.doctor.stages import STAGES, Skipped, Stages, Trouble
from sam2_mcp_bridge.errors import Failure, SetupError

LIMIT_S = 28.0
# Of what servers say; the rest is in their logs.
MAX_WORDS = 400

_NOT_SERVING = "the bridge would not start; correct the setting"

# Agents are told to call again; who asks a doctor has done that.
_MENDS = {
    "connection_broken": "see the server's log; if it speaks https, SAM2_MCP_URL must begin with https://",
    "timeout": "see the server's log; if it saw no request, something on the way keeps the connection and is silent",
    "busy": "wait a few seconds and check again; if it stays so, see the log of the server or gateway",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One stage: `state` is ok, failed, skipped or not_reached; `detail` what was found, `mend` what to do."""

    stage: str
    state: str
    detail: str = ""
    mend: str | None = None
    ms: float = 0.0


def main(argv: Sequence[str]) -> int:
    """Check, print what was found, return the exit code."""
    own = argparse.ArgumentParser("sam2-mcp", add_help=False, allow_abbrev=False)
    own.add_argument("--check", nargs="?", metavar="URL")
    own.add_argument("--json", action="store_true")
    given, flags = own.parse_known_args(argv)
    flags += ["--url", given.check] if given.check else []
    findings = run(flags)
    report = _as_json(findings) if given.json else _as_text(findings)
    sys.stdout.write(report.encode("ascii", "backslashreplace").decode("ascii"))
    return int(any(finding.state == "failed" for finding in findings))


def run(flags: Sequence[str]) -> list[Finding]:
    """Every stage, in order; after a failed one the others are not reached."""
    end_s = time.monotonic() + LIMIT_S
    stages = Stages(lambda: config.load(flags))
    findings: list[Finding] = []
    for name, limit_s in STAGES.items():
        if any(finding.state == "failed" for finding in findings):
            findings.append(Finding(name, "not_reached"))
        else:
            stages.probe.deadline_s = min(end_s, time.monotonic() + limit_s)
            findings.append(_tried(stages, name))
    stages.close()
    return findings


def _tried(stages: Stages, name: str) -> Finding:
    started_s = time.perf_counter()
    state, mend = "failed", None
    try:
        state, detail = "ok", getattr(stages, name)()
    except Skipped as reason:
        state, detail = "skipped", str(reason)
    except Trouble as trouble:
        detail, mend = str(trouble), trouble.mend
    except Failure as failure:
        # Whether a call ran is a question of agents.
        said = failure.next_step.removeprefix("nothing was run. ")
        detail, mend = f"[{failure.code}] {failure.what}", _MENDS.get(failure.code, said)
    except SetupError as error:
        detail, mend = str(error), _NOT_SERVING
    return Finding(name, state, _clean(detail), mend, round((time.perf_counter() - started_s) * 1000, 1))


def _clean(text: str) -> str:
    """On one line, without what a terminal would obey, and not endless: some of it was written by a server."""
    words = "".join(character if character.isprintable() else " " for character in text).split()
    line = " ".join(words)
    return line if len(line) <= MAX_WORDS else line[:MAX_WORDS] + " ..."


def _as_json(findings: list[Finding]) -> str:
    failed = next((finding.stage for finding in findings if finding.state == "failed"), None)
    report = {"ok": failed is None, "failed_stage": failed, "stages": [asdict(finding) for finding in findings]}
    return json.dumps(report) + "\n"


def _as_text(findings: list[Finding]) -> str:
    lines = []
    for finding in findings:
        time_taken = f"  ({finding.ms:.0f} ms)" if finding.state in ("ok", "failed") else ""
        state = finding.state.replace("_", " ")
        lines.append(f"{state:12} {finding.stage:11} {finding.detail}{time_taken}".rstrip())
        if finding.mend is not None:
            lines.append(f"{'':24} mend: {finding.mend}")
    return "\n".join(lines) + "\n"
