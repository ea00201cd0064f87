"""Hours of faults and good calls through real bridges: is every answer right, and does memory stay flat?

    python -m tests.bench.soak --minutes 60 [--profile station|full] [--through pipes|station] [--json] [--check]

Half of the bridges have an upstream with sessions, which it forgets now and then. The faults are those of
tests/e2e/faults that take less than tens of megabytes. `--check` ends with 1 if an answer was wrong or missing, if
resident memory grew by more than 2 MB, or if descriptors or threads grew, all at points at which the bridge was quiet.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from tests.bench.soak.run import Plan, soak
from tests.e2e.faults.session import PROFILES


def table(report: dict[str, Any]) -> str:
    lines = [f"{report['wall_s'] / 60:.1f} min, {report['fault_kinds']} kinds of faults, plan {report['plan']}"]
    for number, bridge in enumerate(report["bridges"], 1):
        quiet, done = bridge["quiet_mb"], bridge["done"]
        pss_mb, told = bridge["quiet_pss_mb"], sum(bridge["failures"].values())
        lines += [
            f"bridge {number}{' (sessions)' if bridge['stateful'] else ''}: {done.get('calls', 0)} calls, "
            f"{bridge['wrong_count']} wrong or missing, {told} told that they failed; "
            f"{bridge['kinds_met']} kinds met; {done}",
            f"  memory at quiet points: {quiet['first_mb']:.1f} -> {quiet['last_mb']:.1f} MB "
            f"(grown {quiet['grown_mb']:+.2f}, slope {quiet['slope_mb_per_h']:+.2f} MB/h), "
            f"peak {bridge['rss_mb']['peak']:.1f} MB, PSS {pss_mb[0]:.1f} -> {pss_mb[1]:.1f} MB",
            f"  {bridge['quiet_points']} quiet points: descriptors {bridge['descriptors']}, "
            f"threads {bridge['threads']}",
        ]
    return "\n".join([*lines, *(report["shortcomings"] or ["passed"])])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.soak", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--profile", choices=PROFILES, default="station")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bridges", type=int, default=2)
    parser.add_argument("--rate", type=float, default=20.0, help="actions a second and bridge (20)")
    parser.add_argument("--through", choices=["pipes", "station"], default="pipes")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--check", action="store_true", help="end with 1 if anything fell short")
    options = parser.parse_args()
    plan = Plan(
        minutes=options.minutes,
        profile=options.profile,
        seed=options.seed,
        bridges=options.bridges,
        rate_per_s=options.rate,
        through_station=options.through == "station",
    )
    report = soak(plan).as_dict()
    print(json.dumps(report, indent=1) if options.json else table(report))
    return int(options.check and bool(report["shortcomings"]))


if __name__ == "__main__":
    raise SystemExit(main())
