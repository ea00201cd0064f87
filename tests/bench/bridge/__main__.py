"""The bridge beside the floor and the other bridges, in one run.

    python -m tests.bench.bridge [setup] [--quick] [--rounds 9] [--calls 300] [--json] [--check]

`setup` only installs what is measured, below .cache/bench. `--quick` leaves the peers out and the scenes that wait.
`--check` ends with 1 if the bridge is above 1.1 x the floor in start or memory, adds more than 1 ms to the median call,
or is not the best in a row.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from tests.bench.bridge import behaviour, figures, programs, report
from tests.bench.bridge.host import Server


def main(argv: Sequence[str] | None = None) -> int:
    options = _options(argv)
    installed: list[programs.Program | programs.Absent] = [*programs.own()]
    installed += [] if options.quick else programs.peers()
    failed = {program.name: program.reason for program in installed if isinstance(program, programs.Absent)}
    measured = [program for program in installed if isinstance(program, programs.Program)]
    if options.what == "setup":
        print(failed or "Everything is installed.")
        return 0
    with Server(sys.executable) as server:
        starts = figures.measure_starts(measured, server.url, options.rounds, failed)
        measured = [program for program in measured if program.name not in failed]
        latencies = figures.measure_latency(measured, server.url, options.calls, failed)
    measured = [program for program in measured if program.name not in failed]
    if unusable := failed.keys() & {programs.OURS, programs.FLOOR}:
        print(f"Nothing to compare: {', '.join(f'{name}: {failed[name]}' for name in unusable)}", file=sys.stderr)
        return 1
    outcomes = {} if options.quick else play_all(measured)
    absent = [programs.Absent(name, reason) for name, reason in failed.items()]
    columns = {
        program.name: report.Column(
            figures.median(starts[program.name]), latencies[program.name], outcomes.get(program.name, {})
        )
        for program in measured
    }
    found = report.shortcomings(columns, latencies["direct"])
    if options.json:
        print(json.dumps(report.as_json(columns, latencies["direct"], absent), indent=1))
    else:
        print(report.table(columns, latencies["direct"], absent))
        print("\n".join(["", *found] if found else ["", "The bridge is as good as the check demands."]))
    return int(options.check and bool(found))


def play_all(measured: Sequence[programs.Program]) -> dict[str, dict[str, behaviour.Outcome]]:
    """All programs at once: the scenes are seconds of waiting and hardly any work."""
    with ThreadPoolExecutor(len(measured)) as pool:
        played = pool.map(lambda program: behaviour.play(program, sys.executable), measured)
        return {program.name: outcomes for program, outcomes in zip(measured, played, strict=True)}


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        "python -m tests.bench.bridge", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="?", choices=("run", "setup"), default="run")
    parser.add_argument("--quick", action="store_true", help="only the bridge and the floor, only figures")
    parser.add_argument("--rounds", type=int, default=9, help="starts of each program (9)")
    parser.add_argument("--calls", type=int, default=300, help="calls for the latency (300)")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--check", action="store_true", help="end with 1 if something is not as good as it must be")
    return parser.parse_args(argv)


if __name__ == "__main__":
    raise SystemExit(main())
