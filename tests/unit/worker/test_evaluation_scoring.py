"""Scores: what counts, one finding for one, and intervals that say how little a few runs prove."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes.report_reader import ALLOWED_ATTRIBUTES, ALLOWED_TAGS, HOSTILE, read, words

from sam2_mcp_worker.evaluation.case_files import Case, ExpectedFinding
from sam2_mcp_worker.evaluation.report import evaluation_report
from sam2_mcp_worker.evaluation.runs import Observed, RunRecord
from sam2_mcp_worker.evaluation.scoring import Confused, FalseFinding, match, rate, score, wilson

CASE = Case(
    id="ad",
    label="conditional",
    input="x",
    findings=[
        ExpectedFinding(kind="missing", about=["예금자보호", "청약 철회"]),
        ExpectedFinding(kind="figure", about="1억", match="contains"),
        ExpectedFinding(kind="small", about="주석", optional=True),
    ],
)


def run(repeat: int, label: str | None, *findings: tuple[str, str], code: str = "", listed: bool = True) -> RunRecord:
    found = tuple(Observed(*one) for one in findings) if listed else None
    return RunRecord("ad", "d", repeat, f"r{repeat}", "", 1.0, code, "", label, found)


FULL = (("missing", "예금자보호"), ("missing", "청약철회"), ("figure", "최대 1억 원"))


def test_a_run_that_says_what_was_expected_is_flawless() -> None:
    result = score([CASE], [run(1, "conditional", *FULL), run(2, "conditional", *FULL, ("small", "주석"))])
    assert result.flawless
    assert result.recall is not None and (result.recall.hits, result.recall.total) == (6, 6)
    assert result.precision is not None and (result.precision.hits, result.precision.total) == (6, 6)
    assert result.confusion == (Confused("conditional", "conditional", 2),)
    optional = result.cases[0].findings[-1]
    assert optional.optional and optional.found is not None and optional.found.hits == 1


def test_missed_false_and_wrong_are_told_apart() -> None:
    runs = [run(1, "approve"), run(2, None, *FULL[:1], ("missing", "민원"), ("figure", "5천만"))]
    result = score([CASE], runs)
    assert result.whole and not result.flawless
    assert result.agreement is not None and result.agreement.hits == 0
    assert result.recall is not None and (result.recall.hits, result.recall.total) == (1, 6)
    assert result.precision is not None and (result.precision.hits, result.precision.total) == (1, 3)
    assert set(result.cases[0].false) == {FalseFinding("missing", "민원", 1), FalseFinding("figure", "5천만", 1)}
    assert set(result.confusion) == {Confused("conditional", "approve", 1), Confused("conditional", "no label", 1)}
    assert result.cases[0].steady == 0.5


def test_refused_runs_and_runs_of_other_cases_are_in_no_figure() -> None:
    good = run(1, "conditional", *FULL)
    stranger = RunRecord("other", "d", 1, "x", "", 1.0)
    result = score([CASE], [good, run(2, None, code="timeout"), stranger])
    alone = score([CASE], [good])
    assert (result.attempts, result.scored, result.refused) == (2, 1, {"timeout": 1})
    assert (result.agreement, result.recall, result.precision) == (alone.agreement, alone.recall, alone.precision)
    assert not result.whole and alone.whole


def test_nothing_to_score_is_no_score() -> None:
    result = score([CASE], [])
    assert (result.attempts, result.agreement, result.recall, result.cases[0].steady) == (0, None, None, None)
    assert not result.whole
    silent = score([Case(id="ad", input="x")], [run(1, None)])
    assert (silent.agreement, silent.recall, silent.precision) == (None, None, None)
    unread = score([CASE], [run(1, "conditional", listed=False)])
    assert unread.recall is None and unread.cases[0].unlisted == 1
    assert unread.whole and not unread.flawless  # what was found is not known


def test_repeats_that_are_all_alike_prove_no_more_than_their_cases() -> None:
    one_run, four_cases = rate([[(9, 9)]]), rate([[(3, 3)] * 50] * 4)
    assert one_run is not None and (one_run.low, one_run.high) == wilson(1, 1)
    assert four_cases is not None and (four_cases.low, four_cases.high) == wilson(4, 4)
    never = rate([[(0, 2)] * 10])
    assert never is not None and (never.low, never.high) == wilson(0, 10)


def test_one_finding_stands_for_one() -> None:
    case = Case(
        id="ad",
        input="x",
        findings=[
            ExpectedFinding(kind="k", about="갱신", match="contains"),
            ExpectedFinding(kind="k", about="갱신 보험료"),
        ],
    )
    matched, false = match(case, [Observed("k", "갱신보험료")])
    assert matched == {("k", "갱신 보험료")} and false == []
    matched, false = match(case, [Observed("k", "갱신 보험료"), Observed("k", "갱신형"), Observed("k", "갱신일")])
    assert len(matched) == 2 and false == [Observed("k", "갱신일")]


FOUND = st.lists(
    st.builds(
        Observed,
        st.sampled_from(["missing", "figure", "small"]),
        st.sampled_from(["예금자보호", "청약 철회", "1억", "주석"]),
    ),
    unique=True,
)


@given(FOUND)
def test_every_finding_is_either_expected_or_false(found: list[Observed]) -> None:
    matched, false = match(CASE, found)
    assert len(matched) + len(false) == len(found)


@given(st.integers(1, 400).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total))))
def test_wilsons_interval_holds_the_share_and_is_never_a_point(counts: tuple[int, int]) -> None:
    hits, total = counts
    low, high = wilson(hits, total)
    assert 0 <= low < high <= 1
    assert low <= hits / total <= high


def test_wilsons_interval_is_that_of_the_textbook() -> None:
    low, high = wilson(8, 10)  # Newcombe 1998: 0.490 to 0.943
    assert (round(low, 3), round(high, 3)) == (0.490, 0.943)


COUNTS = st.integers(0, 4).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total)))


@settings(max_examples=25)  # each draws 2,000 samples twice
@given(st.lists(st.lists(COUNTS, max_size=4), max_size=3))
def test_a_rates_interval_holds_it_is_no_narrower_than_wilsons_and_always_the_same(
    groups: list[list[tuple[int, int]]],
) -> None:
    found = rate(groups)
    if found is None:
        assert not any(total for group in groups for _, total in group)
        return
    low, high = wilson(found.hits, found.total)
    assert 0 <= found.low <= low <= found.share <= high <= found.high <= 1
    assert rate(groups) == found


def test_cases_that_differ_make_an_interval_wider_than_their_many_runs_would() -> None:
    lasting = rate([[(1, 1)] * 50, [(0, 1)] * 50])
    mixed = rate([[(1, 1), (0, 1)] * 25, [(1, 1), (0, 1)] * 25])
    assert lasting is not None and mixed is not None
    assert (lasting.low, lasting.high) == (0.0, 1.0)
    assert mixed.high - mixed.low < 0.5


def test_the_report_says_first_what_does_not_count_and_lets_nothing_act() -> None:
    runs = [
        run(1, "conditional", *FULL, ("missing", HOSTILE)),
        run(2, HOSTILE, listed=False),
        RunRecord("ad", "d", 3, HOSTILE, "", 1.0, "wrong_input", HOSTILE, None, None, (HOSTILE,), (HOSTILE,)),
    ]
    case = CASE.model_copy(update={"findings": [*CASE.findings, ExpectedFinding(kind="k", about=HOSTILE)]})
    document = evaluation_report(HOSTILE, "2026-11-30T12:00:00+00:00", HOSTILE, score([case], runs), {"ad": runs})
    for tag, attributes in read(document).tags:
        assert tag in ALLOWED_TAGS and attributes.keys() <= ALLOWED_ATTRIBUTES
    seen = words(document)
    assert "1 of 3 runs were refused and are in no figure." in seen
    assert "wrong_input 1" in seen
    assert seen.index("refused") < seen.index("label agreement") < seen.index("Labels, expected and given")
    assert "missing (not expected)" in seen and "small (optional)" in seen
    assert "75% (" in seen  # three of four required findings, in the one run that lists its findings


def test_the_report_of_whole_runs_without_labels_shows_no_empty_tables() -> None:
    case = Case(id="ad", input="x")
    whole = [run(1, None)]
    document = evaluation_report("t", "now", "w", score([case], whole), {"ad": whole})
    seen = words(document)
    assert "All 1 runs count." in seen
    assert "Labels, expected and given" not in seen and "Findings 지적 사항" not in seen
