"""Where sound is cut: properties over made-up voices, and the choices a listener would make."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from sam2_mcp_worker.media.sound_cuts import LONGEST_PIECE, PADDING, best_pause, pieces, speech_spans

Voice = list[float]


def spoken(*spans: tuple[int, int], length: int) -> Voice:
    """A voice in these spans and nowhere else."""
    return [1.0 if any(start <= index < end for start, end in spans) else 0.0 for index in range(length)]


runs = st.lists(st.tuples(st.integers(0, 1100), st.sampled_from([0.0, 0.3, 0.9])), min_size=1, max_size=5)
voices = runs.map(lambda parts: [probability for count, probability in parts for _ in range(count)])


@settings(max_examples=50)
@given(voice=voices, seed=st.integers(0, 9))
def test_pieces_rise_never_overlap_and_are_never_too_long(voice: Voice, seed: int) -> None:
    levels = [float((index * 7919 + seed) % 101) for index in range(len(voice))]
    found = pieces(voice, levels)
    assert all(0 <= start < end <= len(voice) and end - start <= LONGEST_PIECE for start, end in found)
    assert all(before[1] <= after[0] for before, after in pairwise(found))


@settings(max_examples=50)
@given(voice=voices)
def test_all_speech_is_in_a_piece(voice: Voice) -> None:
    found = pieces(voice, [0.0] * len(voice))
    within = [any(start <= index < end for start, end in found) for index in range(len(voice))]
    assert all(within[index] for start, end in speech_spans(voice) for index in range(start, end))
    assert bool(found) == bool(speech_spans(voice))


@settings(max_examples=50)
@given(voice=voices.filter(bool))
def test_the_best_pause_lies_inside_and_in_speech_only_when_there_is_no_pause(voice: Voice) -> None:
    cut = best_pause(voice, [0.0] * len(voice))
    assert 0 <= cut < len(voice)
    spans = speech_spans(voice)
    assert not any(start < cut < end for start, end in spans) or spans == [(0, len(voice))]


def test_a_short_hesitation_does_not_end_speech_and_a_click_is_none() -> None:
    assert speech_spans(spoken((10, 20), (22, 30), length=40)) == [(10, 30)]
    assert speech_spans(spoken((10, 12), length=40)) == []
    assert speech_spans(spoken((10, 13), (16, 19), length=40)) == [(10, 13), (16, 19)]  # words of 0.1 s, 0.1 s apart


def test_a_doubtful_voice_is_heard_and_a_more_doubtful_one_is_not() -> None:
    assert speech_spans([0.41] * 5) == [(0, 5)]
    assert speech_spans([0.39] * 5) == []


def test_a_voice_that_fades_is_followed_below_the_threshold_at_which_it_begins() -> None:
    assert speech_spans([0.0, 0.9, 0.9, 0.3, 0.3, 0.1, 0.3]) == [(1, 5)]


def test_neighbouring_utterances_are_heard_together_and_distant_ones_apart() -> None:
    voice = spoken((50, 100), (140, 200), (400, 450), length=600)
    assert pieces(voice, [0.0] * 600) == [(50 - PADDING, 200 + PADDING), (400 - PADDING, 450 + PADDING)]


def test_what_is_too_long_is_cut_at_its_longest_pause() -> None:
    voice = spoken((0, 500), (540, 800), (805, 1300), length=1300)
    assert [end for _, end in pieces(voice, [0.0] * 1300)] == [500 + PADDING, 1300]


def test_a_monologue_is_cut_where_it_is_quietest_and_nothing_of_it_is_lost() -> None:
    levels = [-20.0] * 2000
    levels[700:705] = [-50.0] * 5
    found = pieces([1.0] * 2000, levels)
    assert found[0] == (0, 702)
    assert [start for start, _ in found[1:]] == [end for _, end in found[:-1]]
    assert found[-1][1] == 2000


def test_a_long_pause_only_shortly_after_the_beginning_is_not_where_a_piece_ends() -> None:
    voice = spoken((0, 40), (100, 700), (720, 1400), length=1400)
    assert pieces(voice, [0.0] * 1400)[0] == (0, 707)


def test_where_a_pause_is_all_there_is_before_too_much_it_is_taken() -> None:
    voice = spoken((0, 40), (60, 60 + 920), length=1000)
    assert [start for start, _ in pieces(voice, [0.0] * 1000)] == [0, 53]


def test_with_the_quiet_around_it_a_piece_is_still_not_too_long() -> None:
    found = pieces(spoken((20, 500), (540, 950), length=1000), [0.0] * 1000)
    assert found == [(20 - PADDING, 500 + PADDING), (540 - PADDING, 950 + PADDING)]


def test_of_pauses_near_the_beginning_the_last_one_is_taken() -> None:
    voice = spoken((0, 40), (60, 100), (120, 120 + 900), length=1100)
    assert [start for start, _ in pieces(voice, [0.0] * 1100)] == [0, 113]


def test_a_stretch_ends_amid_the_longest_pause_or_at_the_quietest_point() -> None:
    assert best_pause(spoken((0, 100), (110, 300), (340, 500), length=500), [0.0] * 500) == 320
    assert best_pause([0.0] * 100, [0.0] * 100) == 50
    levels = [0.0] * 100
    levels[60:65] = [-9.0] * 5
    assert best_pause([1.0] * 100, levels) == 62
    assert best_pause([1.0, 1.0, 1.0], [0.0, -1.0, 0.0]) == 1
