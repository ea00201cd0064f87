"""The rows of the comparison, what is best in each, and what the check demands. Pure: no process, no clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tests.bench.bridge.behaviour import Outcome
from tests.bench.bridge.figures import Latency, Start
from tests.bench.bridge.programs import FLOOR, OURS, OURS_FULL, PEERS_ARE, Absent

HIGHEST_RATIO = 1.1  # to the floor, in start and memory
HIGHEST_ADDED_P50_MS = 1.0
# Two figures of one run within this share are called equal: that is how far medians of nine lie apart.
EQUAL_SHARE = 0.1
# Latencies are equal within what a bridge may add. High percentiles hold what else the machine did: they are equal
# within the direct call's own distance from its median to its p95, if that is more.
EQUAL_MS = HIGHEST_ADDED_P50_MS
NOT_MEASURED = "not measured"
WHAT_IS_BOLD = (
    "Bold is what nobody beats by more than 10 %, in added times by more than 1 ms (in p95 by more than the direct "
    "call's own distance from p50, if that is more)."
)
HOW_JUDGED = "What a bridge does is judged as the station does, by the next line; profile full by ids, as its hosts do."


class Column(NamedTuple):
    """All that was measured of one program."""

    start: Start
    latency: Latency
    outcomes: Mapping[str, Outcome]


class Row(NamedTuple):
    key: str
    title: str
    value: Callable[[Column, Latency], Any]
    form: str = "{:.1f}"
    floor_ratio: bool = False
    # A host that looks at ids wants parallel answers as they come: the order is no merit of profile full.
    full_competes: bool = True


def _outcome(key: str) -> Callable[[Column, Latency], Outcome | None]:
    return lambda column, direct: column.outcomes.get(key)


ROWS = (
    Row("start_s", "spawn to initialize, s", lambda c, d: c.start.ready_s, "{:.3f}", floor_ratio=True),
    Row("idle_rss_mb", "idle: resident MB", lambda c, d: c.start.idle.rss_mb, floor_ratio=True),
    Row("idle_pss_mb", "idle: proportional MB", lambda c, d: c.start.idle.pss_mb, floor_ratio=True),
    Row("idle_private_mb", "idle: private MB", lambda c, d: c.start.idle.private_mb, floor_ratio=True),
    Row("large_rss_mb", "after 5 MB: resident MB", lambda c, d: c.start.after_large.rss_mb, floor_ratio=True),
    Row("large_pss_mb", "after 5 MB: proportional MB", lambda c, d: c.start.after_large.pss_mb, floor_ratio=True),
    Row("large_private_mb", "after 5 MB: private MB", lambda c, d: c.start.after_large.private_mb, floor_ratio=True),
    Row("added_p50_ms", "added to a call, p50 ms", lambda c, d: c.latency.p50_ms - d.p50_ms, "{:.2f}"),
    Row("added_p95_ms", "added to a call, p95 ms", lambda c, d: c.latency.p95_ms - d.p95_ms, "{:.2f}"),
    Row("order", "3 calls at once, order", _outcome("order"), full_competes=False),
    Row("log_line", "log line during a call", _outcome("log_line")),
    Row("long_call", "call of 33 s", _outcome("long_call")),
    Row("restart", "server restarted", _outcome("restart")),
    Row("down_at_start", "server down at start", _outcome("down_at_start")),
    Row("down_in_session", "server down in session", _outcome("down_in_session")),
)


def values(row: Row, columns: Mapping[str, Column], direct: Latency) -> dict[str, Any]:
    found = {name: row.value(column, direct) for name, column in columns.items()}
    return {name: value for name, value in found.items() if value is not None}


def is_best(row: Row, name: str, found: Mapping[str, Any], direct: Latency) -> bool:
    """Whether nobody is better: in figures by more than what two equal programs differ, in outcomes by grade."""
    own = found[name]
    others = [value for other, value in found.items() if other != name and {name, other} != {OURS, OURS_FULL}]
    if isinstance(own, Outcome):
        return all(own.grade >= other.grade for other in others)
    best = min(others, default=own)
    if row.key == "added_p50_ms":
        return own <= best + EQUAL_MS
    if row.key == "added_p95_ms":
        return own <= best + max(EQUAL_MS, direct.p95_ms - direct.p50_ms)
    return own <= best * (1 + EQUAL_SHARE)


def shortcomings(columns: Mapping[str, Column], direct: Latency) -> list[str]:
    """What the check does not let pass, in words."""
    found = []
    for row in ROWS:
        measured = values(row, columns, direct)
        for name in (OURS, OURS_FULL):
            if name not in measured:
                continue
            if row.floor_ratio and (ratio := measured[name] / measured[FLOOR]) > HIGHEST_RATIO:
                found.append(f"{row.title}: {name} is {ratio:.2f} of the floor, allowed {HIGHEST_RATIO}")
            if row.key == "added_p50_ms" and measured[name] > HIGHEST_ADDED_P50_MS:
                found.append(f"{row.title}: {name} {measured[name]:.2f}, allowed {HIGHEST_ADDED_P50_MS}")
            if (name == OURS or row.full_competes) and not is_best(row, name, measured, direct):
                found.append(f"{row.title}: {name} is not best")
    return found


def as_json(columns: Mapping[str, Column], direct: Latency, absent: list[Absent]) -> dict[str, Any]:
    rows = {row.key: values(row, columns, direct) for row in ROWS}
    plain = {
        key: {name: value._asdict() if isinstance(value, Outcome) else value for name, value in found.items()}
        for key, found in rows.items()
    }
    return {
        "rows": plain,
        "direct": direct._asdict(),
        "ratio_to_floor": {row.key: rows[row.key][OURS] / rows[row.key][FLOOR] for row in ROWS if row.floor_ratio},
        "not_measured": {program.name: program.reason for program in absent},
        "shortcomings": shortcomings(columns, direct),
    }


def table(columns: Mapping[str, Column], direct: Latency, absent: list[Absent]) -> str:
    """Markdown; best is bold, every program that is missing is there with the reason below."""
    names = [*columns, *(program.name for program in absent)]
    lines = [f"| | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for row in ROWS:
        if not (found := values(row, columns, direct)):
            continue
        cells = [_cell(row, name, found, direct) if name in columns else NOT_MEASURED for name in names]
        lines.append(f"| {row.title} | {' | '.join(cells)} |")
    lines += ["", WHAT_IS_BOLD]
    lines += [HOW_JUDGED] if any(column.outcomes for column in columns.values()) else []
    lines += [PEERS_ARE] if set(names) - {OURS, OURS_FULL, FLOOR} else []
    lines.append(f"Direct call: p50 {direct.p50_ms:.2f} ms, p95 {direct.p95_ms:.2f} ms.")
    lines += [f"{program.name} is not measured: {program.reason}" for program in absent]
    return "\n".join(lines)


def _cell(row: Row, name: str, found: Mapping[str, Any], direct: Latency) -> str:
    if name not in found:
        return "-"
    value = found[name]
    text = value.words if isinstance(value, Outcome) else row.form.format(value)
    return f"**{text}**" if is_best(row, name, found, direct) else text
