"""Which likeness a phrase needs, told by the wordings that resemble it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sam2_mcp_worker.checks.phrase_decoys import DECOY_MARGIN, judged_phrases
from sam2_mcp_worker.checks.phrase_letters import letters
from sam2_mcp_worker.checks.phrase_places import letter_likeness
from sam2_mcp_worker.checks.phrases import PRESENT, PRESENT_SHORT

ASKED = "보험료 납입이 연체되면 계약이 해지되고 보장이 중단될 수 있습니다"
SIBLING = "건강검진 결과가 좋으면 계약이 유지되고 보장이 계속될 수 있습니다"
UNLIKE = "공시이율은 매월 1일에 바뀌며 최저보증이율은 연 0.5%입니다"


def test_a_phrase_whose_decoys_resemble_it_needs_more() -> None:
    (alone,) = judged_phrases([ASKED])
    (beside,) = judged_phrases([ASKED], [SIBLING, UNLIKE])
    assert (alone.present_at, alone.rivals) == (PRESENT, ())
    like = letter_likeness(letters(ASKED), letters(SIBLING))
    assert beside.present_at == like + DECOY_MARGIN > PRESENT
    assert [rival.text for rival in beside.rivals] == [SIBLING]
    assert beside.absent_below == alone.absent_below


def test_the_same_wording_with_another_number_or_around_it_is_no_decoy() -> None:
    deposits = "예금자보호법에 따라 1인당 1억원까지 보호됩니다"
    (judged,) = judged_phrases(
        [deposits], [deposits.replace("1억", "2억"), f"이 보험계약은 {deposits}. 감사합니다", deposits]
    )
    assert (judged.present_at, judged.rivals) == (judged.phrase.present_at, ())


def test_a_part_of_the_phrase_raises_its_threshold_and_is_no_rival() -> None:
    (judged,) = judged_phrases([ASKED], [ASKED[:24]])
    assert judged.present_at > PRESENT and judged.rivals == ()


def test_short_phrases_count_only_exactly() -> None:
    (judged,) = judged_phrases(["무배당"], ["유배당", ASKED])
    assert (judged.present_at, judged.rivals) == (1.0, ()) and judged.absent_below < 1


@given(st.lists(st.text("보험료납입계약해지될수있습니다 ", min_size=4, max_size=30), min_size=1, max_size=6))
def test_thresholds_stay_in_order_whatever_the_decoys(texts: list[str]) -> None:
    judged = judged_phrases(texts)
    assert [one.phrase.text for one in judged] == [" ".join(text.split()) for text in texts]
    for one in judged:
        assert 0 < one.absent_below < one.present_at <= 1
        assert one.present_at >= one.phrase.present_at
        assert one.present_at <= max(PRESENT_SHORT, one.phrase.present_at)
