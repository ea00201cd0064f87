"""How far the bridge is from the floor: a 14-line httpx loop, measured in the same run.

    python tests/bench/bridge_floor.py [--spawns 11] [--calls 300] [--json] [--check]

Both programs are started alternately against one fake upstream in a process of its own. Measured for each: seconds from
spawn to the initialize answer, resident (RSS) and proportional (PSS) memory after one tool call, and the time that a
call takes, beside the same call made directly with httpx. `--check` ends with 1 if a ratio is above 1.2.

Linux only: memory is read from /proc.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx

HIGHEST_RATIO = 1.2  # design.md, "The bridge"
FAKE_UPSTREAM = Path(__file__).parents[1] / "fakes" / "upstream.py"

# The least that can carry a line to a worker and back. No order, no deadline, no failure is handled.
FLOOR = """\
import json, sys
import httpx
client = httpx.Client(timeout=30)
headers = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
for line in sys.stdin.buffer:
    message = json.loads(line)
    answer = client.post(sys.argv[1], content=line, headers=headers)
    if "id" not in message:
        continue
    text = answer.text
    if "text/event-stream" in answer.headers["content-type"]:
        text = next(part[6:] for part in text.splitlines() if part.startswith("data: "))
    sys.stdout.write(text + "\\n")
    sys.stdout.flush()
"""
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}},
}
CALL = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "echo", "arguments": {"a": 1}}}


class Child:
    """One of the two programs, spoken to as a host does."""

    def __init__(self, command: list[str], url: str) -> None:
        env = {key: value for key, value in os.environ.items() if not key.startswith("SAM2_MCP_")}
        self.started_s = time.perf_counter()
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env | {"SAM2_MCP_URL": url}
        )

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert "result" in answer, answer
        return answer

    def memory_mb(self) -> tuple[float, float]:
        text = Path(f"/proc/{self._process.pid}/smaps_rollup").read_text(encoding="ascii")
        rss_kb, pss_kb = (re.search(rf"^{name}:\s+(\d+) kB", text, re.MULTILINE)[1] for name in ("Rss", "Pss"))  # type: ignore[index]
        return int(rss_kb) / 1024, int(pss_kb) / 1024

    def end(self) -> None:
        self._process.communicate(timeout=10)


def start_upstream() -> tuple[subprocess.Popen[str], str]:
    process = subprocess.Popen(
        [sys.executable, str(FAKE_UPSTREAM)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="ascii"
    )
    assert process.stdout
    return process, f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"


def measure_start(command: list[str], url: str) -> dict[str, float]:
    child = Child(command, url)
    child.ask(INITIALIZE)
    ready_s = time.perf_counter() - child.started_s
    child.ask(CALL)
    rss_mb, pss_mb = child.memory_mb()
    child.end()
    return {"ready_s": ready_s, "rss_mb": rss_mb, "pss_mb": pss_mb}


def measure_calls(ask: Any, calls: int) -> list[float]:
    times_ms = []
    for _ in range(calls):
        began_s = time.perf_counter()
        ask(CALL)
        times_ms.append((time.perf_counter() - began_s) * 1000)
    return times_ms


def measure(spawns: int, calls: int) -> dict[str, dict[str, float]]:
    upstream, url = start_upstream()
    commands = {
        "bridge": [sys.executable, "-u", "-m", "sam2_mcp_bridge"],
        "floor": [sys.executable, "-u", "-c", FLOOR, url],
    }
    starts: dict[str, list[dict[str, float]]] = {name: [] for name in commands}
    for spawn in range(spawns + 1):
        for name, command in commands.items():
            figures = measure_start(command, url)
            if spawn:  # the first one of each warms the page cache
                starts[name].append(figures)
    report = {
        name: {key: statistics.median(run[key] for run in runs) for key in runs[0]} for name, runs in starts.items()
    }
    direct = httpx.Client(trust_env=False)
    headers = {"Accept": "application/json, text/event-stream"}
    asks = {"direct": lambda message: direct.post(url, json=message, headers=headers).raise_for_status()}
    children = {name: Child(command, url) for name, command in commands.items()}
    for name, child in children.items():
        child.ask(INITIALIZE)
        asks[name] = child.ask  # type: ignore[assignment]
    times_ms: dict[str, list[float]] = {name: [] for name in asks}
    for _ in range(10):  # alternating, so that a busy moment hits all three
        for name, ask in asks.items():
            times_ms[name] += measure_calls(ask, calls // 10)
    for name, values in times_ms.items():
        quantiles = statistics.quantiles(values, n=20)
        report.setdefault(name, {}).update(call_p50_ms=quantiles[9], call_p95_ms=quantiles[18])
    for child in children.values():
        child.end()
    direct.close()
    upstream.communicate(timeout=10)
    keys = ("ready_s", "rss_mb", "pss_mb")
    report["ratio"] = {key: report["bridge"][key] / report["floor"][key] for key in keys}
    report["added"] = {name: report[name]["call_p50_ms"] - report["direct"]["call_p50_ms"] for name in commands}
    return report


def table(report: dict[str, dict[str, float]]) -> str:
    rows = [
        ("spawn -> initialize answer, median s", "ready_s", "{:.3f}"),
        ("RSS after one call, median MB", "rss_mb", "{:.1f}"),
        ("PSS after one call, median MB", "pss_mb", "{:.1f}"),
        ("call p50 ms", "call_p50_ms", "{:.2f}"),
        ("call p95 ms", "call_p95_ms", "{:.2f}"),
    ]
    lines = [f"{'':38}{'bridge':>9}{'floor':>9}{'direct':>9}{'ratio':>9}"]
    for title, key, form in rows:
        cells = [
            form.format(report[name][key]) if key in report[name] else "" for name in ("bridge", "floor", "direct")
        ]
        cells.append(f"{report['ratio'][key]:.2f}" if key in report["ratio"] else "")
        lines.append(f"{title:38}" + "".join(f"{cell:>9}" for cell in cells))
    lines.append(f"{'added at the median, ms':38}{report['added']['bridge']:9.2f}{report['added']['floor']:9.2f}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--spawns", type=int, default=11, help="starts of each program (11)")
    parser.add_argument("--calls", type=int, default=300, help="calls for the latency (300)")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--check", action="store_true", help=f"end with 1 if a ratio is above {HIGHEST_RATIO}")
    options = parser.parse_args()
    report = measure(options.spawns, options.calls)
    print(json.dumps(report, indent=1) if options.json else table(report))
    return int(options.check and max(report["ratio"].values()) > HIGHEST_RATIO)


if __name__ == "__main__":
    raise SystemExit(main())
