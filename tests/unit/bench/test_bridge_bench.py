"""What the bench of the bridges makes of lines, figures and faults: its verdicts, without the programs."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.bench.bridge import __main__ as bench
from tests.bench.bridge import behaviour, figures, programs, report
from tests.bench.bridge.behaviour import Outcome, Reply, judge, order_of, summary
from tests.bench.bridge.figures import Latency, Start
from tests.bench.bridge.host import Host, Memory, Server, memory_kb, process_tree
from tests.bench.bridge.programs import FLOOR, OURS, OURS_FULL, Absent, Program

DIRECT = Latency(0.5, 0.9)


def line(**message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 7, **message}).encode() + b"\n"


def tool_result(text: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], **more}


@pytest.mark.parametrize(
    ("came", "kind"),
    [
        (None, "none"),
        (b"", "ended"),
        (b"Loading the model ...\n", "wrong"),
        (b"null\n", "wrong"),
        (line(result=tool_result("mine, and more")), "right"),
        (line(id="7", result=tool_result("mine")), "right"),  # the station looks at no id
        (line(result=tool_result("somebody else's")), "wrong"),
        (line(result={}), "wrong"),
        (line(result=tool_result("mine", isError=True)), "told"),
        (line(error={"code": -32000, "message": "no"}), "told"),
        (line(id=None, error={"code": -32600, "message": "Session not found"}), "foreign"),
        (line(id=1, method="roots/list"), "wrong"),
        (line(method="notifications/message", params={"data": "mine"}), "wrong"),
    ],
)
def test_a_line_is_judged_as_the_answer_to_the_call_that_waits(came: bytes | None, kind: str) -> None:
    assert judge(came, 7, "mine") == kind
    assert kind in behaviour.WORDS


@pytest.mark.parametrize(
    ("first", "following", "grade"),
    [
        ("right", ["right"] * 3, 2),
        ("told", ["right"] * 3, 1),
        ("foreign", ["right"] * 3, 0),
        ("none", ["right"] * 3, 0),
        ("wrong", ["right"] * 3, 0),
        ("told", ["right", "wrong", "right"], 0),
        ("right", ["right", "right", "ended"], 0),
    ],
)
def test_a_fault_is_graded_by_its_call_and_by_those_after_it(first: str, following: list[str], grade: int) -> None:
    outcome = summary(Reply(first, 1.5), [Reply(kind) for kind in following])
    assert outcome.grade == grade
    assert outcome.words.startswith(behaviour.WORDS[first].format(s=1.5))


@given(st.permutations(["a", "b", "c"]))
def test_only_the_order_of_the_requests_is_right(tags: list[str]) -> None:
    outcome = order_of(tags, ["a", "b", "c"])
    assert (outcome.grade == 2) == (tags == ["a", "b", "c"])
    assert (outcome.words == "reversed") == (tags == ["c", "b", "a"])


def test_missing_answers_are_no_order() -> None:
    assert order_of([], ["a", "b"]) == Outcome(0, "no answers")
    assert order_of(["a"], ["a", "b"]).grade == 0


def test_memory_is_read_from_smaps() -> None:
    text = (
        "0-1 ---p 0 [rollup]\nRss:  300 kB\nPss:  200 kB\nPss_Anon: 9 kB\nPrivate_Clean: 10 kB\nPrivate_Dirty: 90 kB\n"
    )
    assert memory_kb(text) == (300, 200, 100)


def test_the_memory_of_children_counts() -> None:
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'print(1, flush=True); input()'])"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout and parent.stdout.readline() == b"1\n"
        tree = process_tree(parent.pid)
        parent.communicate(b"\n", timeout=20)
    assert tree[0] == parent.pid and len(tree) == 2


@given(st.lists(st.floats(0.01, 1e3), min_size=20, max_size=60))
def test_percentiles_lie_within_what_was_measured(times_ms: list[float]) -> None:
    found = figures.latency(times_ms)
    assert min(times_ms) <= found.p50_ms <= found.p95_ms


def column(start_s: float, mb: float, p50_ms: float = 1.0, **outcomes: Outcome) -> report.Column:
    memory = Memory(mb, mb, mb)
    return report.Column(Start(start_s, memory, memory), Latency(p50_ms, p50_ms + 0.5), outcomes)


GOOD = {FLOOR: column(0.3, 20), OURS: column(0.2, 15)}


def test_a_bridge_below_the_floor_has_no_shortcomings() -> None:
    assert report.shortcomings(GOOD, DIRECT) == []


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({OURS: column(0.34, 15)}, "spawn to initialize, s: ours is 1.13 of the floor, allowed 1.1"),
        ({OURS: column(0.2, 23)}, "idle: private MB: ours is 1.15 of the floor, allowed 1.1"),
        ({OURS: column(0.2, 15, p50_ms=1.6)}, "added to a call, p50 ms: ours 1.10, allowed 1.0"),
        ({OURS_FULL: column(0.2, 30)}, "after 5 MB: resident MB: ours, full is 1.50 of the floor, allowed 1.1"),
        ({"peer": column(0.1, 25)}, "spawn to initialize, s: ours is not best"),
        ({"peer": column(0.4, 13)}, "after 5 MB: proportional MB: ours is not best"),
        (
            {OURS: column(0.2, 15, restart=Outcome(1, "")), "peer": column(9, 99, restart=Outcome(2, ""))},
            "server restarted: ours is not best",
        ),
    ],
)
def test_the_check_names_what_is_not_good_enough(changed: dict[str, report.Column], words: str) -> None:
    assert words in report.shortcomings(GOOD | changed, DIRECT)


def test_the_order_of_parallel_answers_is_asked_of_profile_station_only() -> None:
    columns = GOOD | {
        OURS: column(0.2, 15, order=Outcome(2, "right")),
        OURS_FULL: column(0.2, 15, order=Outcome(0, "reversed")),
    }
    assert report.shortcomings(columns, DIRECT) == []
    columns[OURS] = column(0.2, 15, order=Outcome(0, "reversed"))
    columns[FLOOR] = column(0.3, 20, order=Outcome(2, "right"))
    assert report.shortcomings(columns, DIRECT) == ["3 calls at once, order: ours is not best"]


def test_what_could_not_be_measured_is_in_the_table_and_in_the_json() -> None:
    absent = [Absent("peer", "there is no node on this machine")]
    text = report.table(GOOD, DIRECT, absent)
    assert text.splitlines()[0] == "| | floor | ours | peer |"
    assert text.count(report.NOT_MEASURED) >= len(report.ROWS) - 6 and text.endswith(absent[0].reason)
    as_json = json.loads(json.dumps(report.as_json(GOOD, DIRECT, absent)))
    assert as_json["not_measured"] == {"peer": "there is no node on this machine"}
    assert as_json["ratio_to_floor"]["start_s"] == pytest.approx(2 / 3)


def test_the_best_cells_are_bold() -> None:
    row = next(line for line in report.table(GOOD, DIRECT, []).splitlines() if line.startswith("| idle: private"))
    assert row == "| idle: private MB | 20.0 | **15.0** |"


def test_a_program_that_cannot_be_installed_is_named_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_index() -> tuple[str, ...]:
        raise subprocess.CalledProcessError(1, "pip", output="Could not find a version\nthat satisfies mcp-proxy")

    monkeypatch.setattr(programs, "_mcp_proxy", no_index)
    monkeypatch.setenv("PATH", "")
    assert programs.peers() == [
        Absent("mcp-proxy", "Could not find a version that satisfies mcp-proxy"),
        Absent("supergateway", "there is no node on this machine"),
        Absent("mcp-remote", "there is no node on this machine"),
    ]


CHATTY = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    print(json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}))
    answer = {"content": [{"type": "text", "text": message["params"].get("arguments", {}).get("tag", "")}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "result": answer}), flush=True)
"""


@pytest.mark.parametrize(("matches_ids", "kinds"), [(False, ["wrong", "right"]), (True, ["right", "right"])])
def test_only_a_program_for_other_hosts_may_write_between_answers(
    matches_ids: bool, kinds: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "CACHE", tmp_path)
    with Host(Program("chatty", (sys.executable, "-c", CHATTY), matches_ids), "") as host:
        assert [behaviour.ask(host, "echo", "mine").kind for _ in range(2)] == kinds


BROKEN = (
    Program("silent", (sys.executable, "-c", "input()")),
    Program("ends", (sys.executable, "-c", "")),
)


@pytest.mark.parametrize("program", BROKEN, ids=lambda program: program.name)
def test_a_program_that_does_not_answer_is_not_measured(program: Program, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(programs, "CACHE", tmp_path)
    failed: dict[str, str] = {}
    assert figures.measure_starts([program], "http://127.0.0.1:9/", 2, failed) == {program.name: []}
    assert failed == {program.name: "it does not answer initialize and tools/list"}


def test_a_program_that_fails_on_the_way_is_left_out_of_the_latencies(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(programs, "CACHE", tmp_path)
    mute = Program("mute", (sys.executable, "-c", CHATTY))  # its first line is no answer
    failed: dict[str, str] = {}
    with Server(sys.executable) as server:
        assert figures.measure_latency([mute], server.url, 20, failed).keys() == {"direct"}
    assert failed == {"mute": "echo: wrong"}


def test_without_bridge_or_floor_there_is_nothing_to_compare(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(programs, "CACHE", tmp_path)
    monkeypatch.setattr(programs, "own", lambda: [Program(OURS, (sys.executable, "-c", ""))])
    assert bench.main(["--quick"]) == 1
    assert "it does not answer initialize" in capsys.readouterr().err


def test_each_scene_tells_a_good_bridge_from_the_floor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scenes that need no waiting, with the real bridge, the real floor and the real server."""
    monkeypatch.setattr(programs, "CACHE", tmp_path)
    bridge = Program(OURS, (sys.executable, "-u", "-m", "sam2_mcp_bridge"))
    floor = Program(FLOOR, (sys.executable, "-u", "-c", programs.FLOOR_CODE, "URL"))
    expected = {"order": (2, 2), "log_line": (2, 0), "restart": (2, 0)}
    for name, grades in expected.items():
        for program, grade in zip((bridge, floor), grades, strict=True):
            with Server(sys.executable) as server, Host(program, server.url) as host:
                assert host.shake_hands() is not None
                assert behaviour.SCENES[name](host, server).grade == grade, (name, program.name)


def test_a_server_that_is_off_at_the_start_is_no_end_for_a_good_bridge(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(programs, "CACHE", tmp_path)
    with Server(sys.executable) as server:
        bridge = Program(OURS, (sys.executable, "-u", "-m", "sam2_mcp_bridge"))
        assert behaviour.down_at_start(bridge, server).grade == 2
    with Server(sys.executable) as server:
        assert behaviour.down_at_start(BROKEN[1], server) == Outcome(0, "exits without an answer")


def test_the_quick_run_measures_bridge_and_floor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(programs, "CACHE", tmp_path)
    own = [
        Program(OURS, (sys.executable, "-u", "-m", "sam2_mcp_bridge")),
        Program(FLOOR, (sys.executable, "-u", "-c", programs.FLOOR_CODE, "URL")),
        Program("broken", (sys.executable, "-c", "")),
    ]
    monkeypatch.setattr(programs, "own", lambda: own)
    assert bench.main(["--quick", "--rounds", "1", "--calls", "20", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found["rows"]["start_s"]) == {OURS, FLOOR}
    assert found["not_measured"] == {"broken": "it does not answer initialize and tools/list"}
