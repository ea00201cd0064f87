"""Sound read through scan tasks: exact times in every container, speech found, every second accounted for, damage told.

Most run the tasks in this process, on a grid of a few seconds; what is about processes runs in a real scan child.
"""

from __future__ import annotations

import wave
from collections.abc import Iterator
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from tests.fakes.speech_sounds import (
    RATE_HZ,
    Samples,
    Sound,
    join,
    mix,
    music,
    noise,
    repeat_sound,
    said,
    silence,
    sound_frames,
    write_film,
    write_sound,
)

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.execution.pool import ChildPool
from sam2_mcp_worker.media import audio, audio_scan_child
from sam2_mcp_worker.media.audio import SoundFacts, SoundStretch, probe_sound, scan_sound, stretch_count, stretches_of
from sam2_mcp_worker.media.decoder import SCAN_MODULE

# 40 voice frames of 32 ms, and an edge of 20.
GRID_S, EDGE_S = 1.28, 0.64


class InThisProcess:
    """A `TaskRunner` without children."""

    async def run(
        self, task: str, params: dict[str, Any], *, timeout_s: float, job: str, finish: bool = False
    ) -> dict[str, Any]:
        return audio_scan_child.TASKS[task](params)


class Desk:
    """Sends files through the scan tasks, and holds what comes back to account."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runner = InThisProcess()

    async def probe(self, path: Path, max_s: float = 14_400) -> SoundFacts:
        return await probe_sound(self.runner, path, max_s=max_s, timeout_s=9, job="t")

    async def scan(self, path: Path, facts: SoundFacts, number: int) -> SoundStretch:
        return await scan_sound(self.runner, path, facts, number, self.folder, timeout_s=9, job="t")

    async def all(self, path: Path) -> tuple[SoundFacts, list[SoundStretch]]:
        """Everything, in order; no moment is missing or told twice."""
        facts = await self.probe(path)
        stretches = [await self.scan(path, facts, number) for number in range(stretch_count(facts))]
        accounted(facts, stretches)
        return facts, stretches

    async def refused(self, data: bytes | Path, **limits: float) -> WorkerError:
        path = data if isinstance(data, Path) else self.folder / "sound.mp3"
        if isinstance(data, bytes):
            path.write_bytes(data)
        with pytest.raises(WorkerError) as caught:
            await self.probe(path, **limits)
        return caught.value


def accounted(facts: SoundFacts, stretches: list[SoundStretch]) -> None:
    """Pieces, silent and damaged spans make up each stretch, and stretches the file, to the sample."""
    assert stretches[0].start_s == pytest.approx(facts.begins_s, abs=1e-4)
    assert stretches[-1].end_s == pytest.approx(facts.end_s, abs=1e-4)
    assert all(before.end_s == after.start_s for before, after in pairwise(stretches))
    for one in stretches:
        pieces = [(piece.start_s, piece.start_s + piece.duration_s) for piece in one.pieces]
        spans = sorted(
            [*pieces, *((s.start_s, s.end_s) for s in one.silent), *((s.start_s, s.end_s) for s in one.damaged)]
        )
        assert spans[0][0] == one.start_s
        assert spans[-1][1] == pytest.approx(one.end_s, abs=2e-6)
        assert all(before[1] == pytest.approx(after[0], abs=2e-6) for before, after in pairwise(spans))


def heard(stretches: list[SoundStretch], origin_s: float = 0.0) -> Samples:
    """All pieces at their places on the clock from a time on."""
    pieces = [piece for one in stretches for piece in one.pieces]
    whole = np.zeros(round((stretches[-1].end_s - origin_s + 1) * RATE_HZ), np.int16)
    for piece in pieces:
        with wave.open(str(piece.path)) as file:
            assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (RATE_HZ, 1, 2)
            samples = np.frombuffer(file.readframes(file.getnframes()), np.int16)
        assert len(samples) == round(piece.duration_s * RATE_HZ)
        start = round((piece.start_s - origin_s) * RATE_HZ)
        whole[start : start + len(samples)] = samples
    return whole


def lag_s(sound: Sound, got: Samples) -> float:
    """By how much what was heard comes later than it was spoken."""
    size = 1 << (len(got) + len(sound.samples)).bit_length()
    both = np.fft.rfft(got.astype(float), size) * np.conj(np.fft.rfft(sound.samples.astype(float), size))
    best = int(np.fft.irfft(both, size).argmax())
    return (best if best < size // 2 else best - size) / RATE_HZ


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    yield Desk(tmp_path)
    audio_scan_child.close_scans()


@pytest.fixture
def small_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audio, "STRETCH_S", GRID_S)
    monkeypatch.setattr(audio, "EDGE_S", EDGE_S)


ADVERT = join(silence(0.6), said("accidents covered"), silence(0.9), said("terms apply"), silence(0.4))

# What a container that stores no priming adds: one encoder delay of AAC or MP3 (1,024 or 1,105 samples).
PRIMING_S = 0.027


@pytest.mark.parametrize(
    ("name", "codec", "rate_hz", "late_s"),
    [
        ("a.wav", "pcm_s16le", 44_100, 0.0),
        ("a.mp3", "libmp3lame", 44_100, 0.0),
        ("a.m4a", "aac", 44_100, 0.0),
        ("a.webm", "libopus", 48_000, 0.001),
        ("a.flac", "flac", 16_000, 0.0),
        ("a.ts", "aac", 48_000, PRIMING_S),
        ("a.avi", "libmp3lame", 44_100, PRIMING_S),
        ("a.mkv", "aac", 48_000, 0.001),
    ],
)
async def test_speech_is_found_at_its_time_in_every_container(
    desk: Desk, name: str, codec: str, rate_hz: int, late_s: float
) -> None:
    facts, [one] = await desk.all(write_sound(desk.folder / name, ADVERT, codec=codec, rate_hz=rate_hz))
    assert (facts.sample_rate_hz, facts.tracks, facts.has_video, facts.stated_end_s) == (rate_hz, 1, False, None)
    assert 0 <= lag_s(ADVERT, heard([one])) + 0.0002 <= late_s + 0.0004
    assert not one.damaged and not one.goes_on
    [piece] = one.pieces
    first, last = ADVERT.spoken[0], ADVERT.spoken[-1]
    assert piece.start_s <= first.start_s and last.end_s <= piece.start_s + piece.duration_s
    assert first.start_s - piece.start_s < 0.4 and piece.start_s + piece.duration_s - last.end_s < 0.4


@pytest.mark.parametrize(
    ("name", "codec"), [("a.mp3", "libmp3lame"), ("a.m4a", "aac"), ("a.ogg", "libopus"), ("a.ts", "aac")]
)
@pytest.mark.usefixtures("small_grid")
async def test_a_stretch_is_the_same_whether_those_before_it_were_scanned_or_not(
    desk: Desk, name: str, codec: str
) -> None:
    path = write_sound(desk.folder / name, ADVERT, codec=codec, rate_hz=48_000)
    facts, in_order = await desk.all(path)
    last = len(in_order) - 1
    assert last == 2
    for number in reversed(range(len(in_order))):
        audio_scan_child.close_scans()
        assert await desk.scan(path, facts, number) == in_order[number]
    assert await desk.scan(path, facts, last) == in_order[last]  # the file is open again by now


@pytest.mark.usefixtures("small_grid")
async def test_a_long_recording_is_heard_whole_and_its_stretches_end_in_pauses(desk: Desk) -> None:
    once = write_sound(desk.folder / "once.wav", ADVERT)
    path = desk.folder / "long.wav"
    period_s = repeat_sound(once, path, 3)
    _, stretches = await desk.all(path)
    assert len(stretches) > 6
    got = heard(stretches)
    for copy in range(3):
        for spoken in ADVERT.spoken:
            start, end = (round((at_s + copy * period_s) * RATE_HZ) for at_s in (spoken.start_s, spoken.end_s))
            of = slice(round(spoken.start_s * RATE_HZ), round(spoken.start_s * RATE_HZ) + end - start)
            assert np.array_equal(got[start:end], ADVERT.samples[of])


@pytest.mark.parametrize(
    "quiet",
    [silence(2), noise(2, level_dbfs=-40), noise(2, level_dbfs=-14), music(2), Sound(noise(2).samples // 800)],
    ids=["silence", "soft noise", "loud noise", "music", "dither"],
)
async def test_where_nobody_speaks_there_is_no_piece(desk: Desk, quiet: Sound) -> None:
    _, [one] = await desk.all(write_sound(desk.folder / "a.wav", quiet))
    assert not one.pieces
    [span] = one.silent
    power = np.square(quiet.samples.astype(float)).mean() / 32768**2
    assert span.loudness_dbfs == pytest.approx(max(-100.0, 10 * np.log10(power + 1e-12)), abs=0.1)


async def test_speech_under_music_and_very_soft_speech_are_found(desk: Desk) -> None:
    for sound in (mix(ADVERT, music(4, level=0.3)), Sound(ADVERT.samples // 100, ADVERT.spoken)):
        _, [one] = await desk.all(write_sound(desk.folder / "a.wav", sound))
        inside = [
            any(
                p.start_s <= spoken.start_s + 0.1 and spoken.end_s - 0.1 <= p.start_s + p.duration_s for p in one.pieces
            )
            for spoken in sound.spoken
        ]
        assert inside == [True, True]


async def test_a_piece_tells_how_loud_it_is_and_each_part_of_it(desk: Desk) -> None:
    _, [one] = await desk.all(write_sound(desk.folder / "a.wav", ADVERT))
    [piece] = one.pieces
    samples = heard([one])[round(piece.start_s * RATE_HZ) :][: round(piece.duration_s * RATE_HZ)].astype(float)
    assert piece.loudness_dbfs == pytest.approx(10 * np.log10(np.square(samples).mean() / 32768**2), abs=0.06)
    assert len(piece.levels_dbfs) == -(-len(samples) // 1600)
    third = np.square(samples[4800:6400]).mean() / 32768**2
    assert piece.levels_dbfs[3] == pytest.approx(10 * np.log10(third), abs=0.06)


async def test_the_clock_of_a_film_is_that_of_its_pictures(desk: Desk) -> None:
    late = write_film(desk.folder / "late.mkv", ADVERT, sound_begins_s=1.5)
    facts, [one] = await desk.all(late)
    assert facts.has_video and facts.start_s == pytest.approx(1.5, abs=0.03)
    assert lag_s(ADVERT, heard([one])) == pytest.approx(1.5, abs=0.03)
    assert one.silent[0].loudness_dbfs is None and one.silent[0].end_s == pytest.approx(1.5, abs=0.03)
    for name, early_s in (("early.mkv", 0.5), ("early.mp4", 2.0)):
        early = write_film(desk.folder / name, ADVERT, picture_begins_s=early_s)
        facts, [one] = await desk.all(early)
        assert facts.start_s == pytest.approx(-early_s, abs=0.03) and one.start_s == facts.begins_s == facts.start_s
        assert lag_s(ADVERT, heard([one], -3.0)) - 3.0 == pytest.approx(-early_s, abs=0.03)


async def test_channels_that_cancel_each_other_are_heard_and_so_is_a_single_one(desk: Desk) -> None:
    for factors in ((1.0, -1.0), (0.0, 1.0)):
        path = write_sound(desk.folder / "a.wav", ADVERT, channels=factors)
        facts, [one] = await desk.all(path)
        assert facts.channels == 2
        lags = [abs(lag_s(ADVERT, sign * heard([one]))) for sign in (1, -1)]
        assert (len(one.pieces), min(lags)) == (1, 0)


async def test_of_several_tracks_the_best_is_heard_and_its_language_told(desk: Desk) -> None:
    path = desk.folder / "a.mkv"
    with av.open(path, "w") as out:
        tracks: list[Any] = [out.add_stream("flac", rate=RATE_HZ, layout="mono") for _ in range(2)]
        tracks[1].metadata["language"] = "kor"
        tracks[0].metadata["language"] = "und"
        for track, sound in zip(tracks, (silence(1), ADVERT), strict=True):
            for start in range(0, len(sound.samples), 4096):
                block = np.ascontiguousarray(sound.samples[None, start : start + 4096])
                frame = av.AudioFrame.from_ndarray(block, format="s16", layout="mono")
                frame.sample_rate, frame.pts = RATE_HZ, start
                out.mux(track.encode(frame))
            out.mux(track.encode(None))
    facts, [one] = await desk.all(path)
    assert (facts.tracks, len(one.pieces) == 1) == (2, facts.track == 2)
    assert facts.language == ("kor" if facts.track == 2 else None)


@pytest.mark.parametrize(
    ("name", "codec"), [("a.mp3", "libmp3lame"), ("a.m4a", "aac"), ("a.ogg", "libopus"), ("a.ts", "aac")]
)
async def test_a_damaged_middle_is_told_and_what_lies_around_it_is_heard(desk: Desk, name: str, codec: str) -> None:
    path = write_sound(desk.folder / name, ADVERT, codec=codec, rate_hz=48_000)
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 2000] = np.random.default_rng(3).bytes(2000)
    path.write_bytes(data)
    _, [one] = await desk.all(path)
    assert one.damaged and all(0.5 < span.start_s < span.end_s < 3.5 for span in one.damaged)
    assert one.pieces[0].start_s < ADVERT.spoken[0].start_s
    assert one.pieces[-1].start_s > one.damaged[0].start_s
    assert ("all later times may be off" in one.damaged[0].reason) == (name == "a.mp3")


async def test_a_decoder_that_cannot_even_be_set_up_is_damage_and_no_failure(desk: Desk) -> None:
    path = write_sound(desk.folder / "a.flv", ADVERT, codec="aac", rate_hz=44_100)
    data = bytearray(path.read_bytes())
    config = data.index(b"\xaf\x00") + 2  # AudioSpecificConfig of AAC
    data[config : config + 2] = b"\xff\xff"
    assert (await desk.refused(bytes(data))).code == "sound_damaged"


@pytest.mark.parametrize(
    ("name", "codec", "rate_hz"),
    [
        ("a.flac", "flac", 16_000),
        ("a.wav", "pcm_s16le", 16_000),
        ("a.mp3", "libmp3lame", 44_100),
        ("a.webm", "libopus", 48_000),
        ("a.flv", "libmp3lame", 44_100),
    ],
)
async def test_a_file_that_was_cut_off_says_how_long_it_claims_to_be(
    desk: Desk, name: str, codec: str, rate_hz: int
) -> None:
    path = write_sound(desk.folder / name, ADVERT, codec=codec, rate_hz=rate_hz)
    assert (await desk.probe(path)).stated_end_s is None
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    facts, _ = await desk.all(path)
    assert facts.stated_end_s == pytest.approx(ADVERT.length_s, abs=0.06)
    assert facts.end_s < ADVERT.length_s - 0.5


async def test_a_guessed_length_of_an_mp3_and_a_longer_film_are_no_claim_that_sound_is_missing(desk: Desk) -> None:
    varying = join(silence(5), noise(5))
    with av.open(desk.folder / "a.mp3", "w", options={"write_xing": "0"}) as out:
        track: Any = out.add_stream("libmp3lame", rate=44_100, layout="mono")
        track.codec_context.options = {"global_quality": "200", "flags": "+qscale"}
        for frame in sound_frames(varying.samples[None, :]):
            out.mux(track.encode(frame))
        out.mux(track.encode(None))
    facts = await desk.probe(desk.folder / "a.mp3")
    assert facts.end_s == pytest.approx(10, abs=0.1) and facts.stated_end_s is None
    constant = write_sound(desk.folder / "b.mp3", ADVERT, codec="libmp3lame", rate_hz=44_100)
    data = bytearray(constant.read_bytes())
    data[len(data) // 4 : len(data) // 4 * 3] = bytes(len(data) // 4 * 2)
    constant.write_bytes(data)  # as long as before, but some of it is no sound any more
    assert (await desk.probe(constant)).stated_end_s is not None
    streamed = bytearray(write_sound(desk.folder / "c.wav", ADVERT).read_bytes())
    streamed[4:8] = b"\xff" * 4  # whoever wrote it did not know yet how long it would be
    (desk.folder / "c.wav").write_bytes(streamed)
    assert (await desk.probe(desk.folder / "c.wav")).stated_end_s is None
    film = write_film(desk.folder / "a.mkv", ADVERT, picture_begins_s=ADVERT.length_s)
    assert (await desk.probe(film)).stated_end_s is None
    film.write_bytes(film.read_bytes()[: film.stat().st_size // 3])
    assert (await desk.probe(film)).stated_end_s is not None


async def test_an_end_that_nobody_looked_for_is_told_as_missing_or_as_unheard(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_sound(desk.folder / "a.flac", ADVERT, codec="flac")
    whole = await desk.probe(path)
    monkeypatch.setattr(audio_scan_child, "SCAN_S", -1.0)
    facts = await desk.probe(path)
    assert facts.end_s == pytest.approx(whole.end_s, abs=1e-5)  # believed, and here it is true
    longer = SoundFacts(**{**asdict(facts), "end_s": facts.end_s + 5})
    one = await desk.scan(path, longer, 0)
    accounted(longer, [one])
    assert one.damaged[0].start_s == pytest.approx(facts.end_s, abs=0.04)
    assert "claims to be longer" in one.damaged[0].reason
    shorter = SoundFacts(**{**asdict(facts), "end_s": 2.0})
    one = await desk.scan(path, shorter, 0)
    assert one.goes_on and one.end_s == 2.0


async def test_one_time_stamp_that_leaps_ahead_moves_nothing(desk: Desk) -> None:
    path = write_sound(desk.folder / "a.flv", ADVERT, codec="aac", rate_hz=44_100)
    good, _ = await desk.all(path)
    data = bytearray(path.read_bytes())
    tags, at = [], 13  # behind the header; a tag is its type, size (3), time (4), stream (3), content and length (4)
    while at < len(data):
        tags.append((data[at], at))
        at += 11 + int.from_bytes(data[at + 1 : at + 4], "big") + 4
    sounds = [at for kind, at in tags if kind == 8]
    data[sounds[len(sounds) // 2] + 7] = 1  # the highest byte of the time, in ms: 16,777 s
    path.write_bytes(data)
    facts, [one] = await desk.all(path)
    assert facts.end_s == good.end_s
    assert lag_s(ADVERT, heard([one])) < PRIMING_S and not one.damaged


@pytest.mark.usefixtures("small_grid")
async def test_passing_over_much_lets_others_have_their_turn(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_sound(desk.folder / "a.mp3", ADVERT, codec="libmp3lame", rate_hz=44_100)
    facts, stretches = await desk.all(path)
    audio_scan_child.close_scans()
    monkeypatch.setattr(audio_scan_child, "PASS_S", -1.0)
    params = audio.stretch_params(path, facts, 2, desk.folder)
    assert audio_scan_child.sound_stretch(params) == {"passing": True}
    assert await desk.scan(path, facts, 2) == stretches[2]


async def test_time_stamps_that_begin_anew_follow_on(desk: Desk) -> None:
    path = write_sound(desk.folder / "a.mp3", ADVERT, codec="libmp3lame", rate_hz=44_100, container="mpegts")
    path.write_bytes(path.read_bytes() * 2)
    facts, [one] = await desk.all(path)
    assert facts.end_s == pytest.approx(2 * ADVERT.length_s, abs=0.2)
    assert one.pieces[-1].start_s + one.pieces[-1].duration_s > ADVERT.length_s + ADVERT.spoken[-1].end_s


async def test_files_without_sound_that_can_be_heard_are_named(desk: Desk) -> None:
    silent_film = desk.folder / "silent.mp4"
    with av.open(silent_film, "w") as out:
        track: Any = out.add_stream("mpeg4", rate=10)
        track.width, track.height, track.pix_fmt = 64, 48, "yuv420p"
        frame = av.VideoFrame.from_ndarray(np.zeros((48, 64, 3), np.uint8), format="rgb24")
        out.mux([*track.encode(frame), *track.encode(None)])
    assert "pictures and no sound" in (error := await desk.refused(silent_film)).what
    assert error.code == "no_audio_stream"
    assert (await desk.refused(b"")).code == "sound_damaged"
    pdf = await desk.refused(b"%PDF-1.7 ....")
    assert (pdf.what, pdf.next_step) == ("the file is a PDF", "Use inspect_pdf for it")
    assert (await desk.refused(b"#EXTM3U\nhttp://example.org/a.mp3")).code == "unsupported_sound"
    assert "not a recording" in (await desk.refused(b"only words, and no sound at all")).what
    wav = write_sound(desk.folder / "a.wav", silence(0.5))
    assert (await desk.refused(wav.read_bytes()[:44])).code == "unsupported_sound"
    nothing = write_sound(desk.folder / "nothing.flac", silence(0), codec="flac")
    assert (await desk.refused(nothing)).code == "sound_damaged"
    assert (await desk.refused(wav, max_s=0.4)).code == "sound_too_long"
    data = bytearray(wav.read_bytes())
    data[24:28] = (10**9).to_bytes(4, "little")  # its sample rate: a resampler for it would take gigabytes
    assert (await desk.refused(bytes(data))).code == "sound_damaged"
    m4a = write_sound(desk.folder / "a.m4a", ADVERT, codec="aac", rate_hz=48_000)
    assert "cut off" in (await desk.refused(m4a.read_bytes()[:9000])).what


async def test_more_channels_than_can_be_mixed_are_no_failure_of_ours(desk: Desk) -> None:
    path = desk.folder / "a.wav"
    with wave.open(str(path), "wb") as out:
        out.setnchannels(64)
        out.setsampwidth(2)
        out.setframerate(RATE_HZ)
        out.writeframes(bytes(64 * 2 * RATE_HZ))
    assert (await desk.refused(path)).code == "sound_damaged"


async def test_encrypted_sound_is_named(desk: Desk) -> None:
    path, key = desk.folder / "a.mp4", "0123456789abcdef0123456789abcdef"
    options = {"encryption_scheme": "cenc-aes-ctr", "encryption_key": key, "encryption_kid": key}
    with av.open(str(path), "w", options=options) as out:
        track: Any = out.add_stream("aac", rate=48_000, layout="mono")
        frame = av.AudioFrame.from_ndarray(ADVERT.samples[None, :9600] / np.float32(32768), format="flt", layout="mono")
        frame.sample_rate = 48_000
        out.mux([*track.encode(frame), *track.encode(None)])
    assert (await desk.refused(path)).code == "sound_encrypted"


async def test_a_wrong_suffix_does_not_matter(desk: Desk) -> None:
    path = write_sound(desk.folder / "a.pdf", ADVERT, codec="libmp3lame", rate_hz=44_100, container="mp3")
    assert (await desk.probe(path)).codec in ("mp3", "mp3float")


def test_stretches_of_a_range_are_all_that_may_hold_some_of_it() -> None:
    facts = SoundFacts(-1.0, 300.0, "aac", "mov", 1, 48_000, None, 1, 1, True, None)
    assert stretch_count(facts) == 5
    assert stretches_of(facts, -1.0, 300.0) == range(5)
    assert stretches_of(facts, 70.0, 80.0) == range(2)
    assert stretches_of(facts, 85.0, 110.0) == range(1, 2)
    assert stretches_of(facts, 299.0, 400.0) == range(4, 5)
    assert stretches_of(facts, 0.0, 0.0) == range(1)


async def test_a_failed_scan_is_not_gone_on_with(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_sound(desk.folder / "a.wav", ADVERT)
    facts = await desk.probe(path)
    with pytest.MonkeyPatch.context() as broken:
        broken.setattr(audio_scan_child, "Stretch", None)
        with pytest.raises(TypeError):
            await desk.scan(path, facts, 0)
    accounted(facts, [await desk.scan(path, facts, 0)])


async def test_another_scan_child_goes_on_with_the_same(desk: Desk) -> None:
    once = write_sound(desk.folder / "once.wav", join(ADVERT, silence(20)))
    path = desk.folder / "long.wav"
    repeat_sound(once, path, 6)
    begun = await scan_in_child(path, desk.folder, (0, 1))
    assert (await scan_in_child(path, desk.folder, (1,))) == begun[1:]  # another child, which knows nothing
    assert begun[0].end_s == begun[1].start_s
    assert [len(one.pieces) for one in begun] == [3, 3]


async def scan_in_child(path: Path, folder: Path, numbers: tuple[int, ...]) -> list[SoundStretch]:
    """These stretches from a scan child of their own."""
    pool = ChildPool("scan", SCAN_MODULE, size=1, config={}, memory_limit_bytes=2 * 2**30)
    await pool.start(wait=True)
    try:
        facts = await probe_sound(pool, path, max_s=900, timeout_s=60, job="t")
        assert stretch_count(facts) == 3
        return [await scan_sound(pool, path, facts, number, folder, timeout_s=60, job="t") for number in numbers]
    finally:
        await pool.close()
