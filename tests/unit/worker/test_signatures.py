"""What bytes say they are, and Base64 that any client takes."""

from __future__ import annotations

import base64
import io
import wave

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.signatures import base64_chars, check_type, decode_strictly, media_type_of


def picture(form: str) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (9, 5), "red").save(out, form)
    return out.getvalue()


def sound(container: str, codec: str, *, rate: int = 48000) -> bytes:
    """A tenth of a second of a tone, encoded for real."""
    out = io.BytesIO()
    with av.open(out, "w", format=container) as file:
        stream = file.add_stream(codec, rate=rate)
        wanted = stream.codec_context
        wanted.layout = "mono"
        tone = (8000 * np.sin(np.arange(rate // 10) * 0.06)).astype(np.int16)[None]
        frame = av.AudioFrame.from_ndarray(tone, format="s16", layout="mono")
        frame.sample_rate = rate
        resampler = av.AudioResampler(format=wanted.format, layout="mono", rate=rate, frame_size=wanted.frame_size)
        for part in [*resampler.resample(frame), *resampler.resample(None)]:
            file.mux(stream.encode(part))
        file.mux(stream.encode(None))
    return out.getvalue()


def plain_wav() -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(b"\0\1" * 400)
    return out.getvalue()


SAMPLES = {
    "image/png": [lambda: picture("PNG")],
    "image/jpeg": [lambda: picture("JPEG")],
    "image/gif": [lambda: picture("GIF")],
    "image/webp": [lambda: picture("WEBP")],
    "audio/wav": [plain_wav],
    "audio/flac": [lambda: sound("flac", "flac")],
    "audio/ogg": [lambda: sound("ogg", "libopus")],
    "audio/mpeg": [lambda: sound("mp3", "libmp3lame"), lambda: without_id3(sound("mp3", "libmp3lame"))],
}


def without_id3(data: bytes) -> bytes:
    """An MP3 that begins with a frame of sound."""
    assert data.startswith(b"ID3")
    tag_bytes = sum((byte & 0x7F) << shift for byte, shift in zip(data[6:10], (21, 14, 7, 0), strict=True))
    return data[10 + tag_bytes :]


@pytest.mark.parametrize("mime_type", SAMPLES)
def test_real_files_are_known_by_their_first_bytes_and_by_no_other_type(mime_type: str) -> None:
    for make in SAMPLES[mime_type]:
        data = make()
        assert media_type_of(data[:16]) == mime_type
        check_type(data, mime_type.upper() + "; charset=binary")
        for other in SAMPLES:
            if other != mime_type:
                with pytest.raises(WorkerError, match=f"declared is {other}, the first bytes are those of {mime_type}"):
                    check_type(data, other)


def test_other_names_of_a_type_are_that_type() -> None:
    check_type(plain_wav(), "audio/x-wav")
    check_type(picture("JPEG"), "image/jpg")


@pytest.mark.parametrize(
    "head", [b"", b"RIFF", b"RIFF\0\0\0\0AVI ", b"%PDF-1.7", b"<svg xmlns", b"\xff\xe0\xff\xff", b"\xff\xeb\x90", b"BM"]
)
def test_what_is_none_of_them_is_no_type(head: bytes) -> None:
    assert media_type_of(head) is None
    with pytest.raises(WorkerError, match="nothing known"):
        check_type(head, "image/png")


@given(st.binary(max_size=200))
def test_strict_base64_is_what_the_encoder_writes(data: bytes) -> None:
    text = base64.b64encode(data).decode("ascii")
    assert decode_strictly(text, len(data)) == data
    assert len(text) == base64_chars(len(data))


@given(st.binary(min_size=2, max_size=60), st.data())
def test_any_other_way_to_write_it_is_refused(data: bytes, choice: st.DataObject) -> None:
    text = base64.b64encode(data).decode("ascii")
    at = choice.draw(st.integers(0, len(text)))
    wrong = choice.draw(
        st.sampled_from(
            [
                text[:at] + "\n" + text[at:],
                text[:at] + " " + text[at:],
                "data:image/png;base64," + text,
                text[:at] + "é" + text[at:],
                text[:-1],
                text + "=",
            ]
        )
    )
    with pytest.raises(WorkerError) as caught:
        decode_strictly(wrong, 1000)
    assert caught.value.code == "base64_invalid"


def test_bits_behind_the_last_byte_and_a_length_above_the_cap_are_refused() -> None:
    with pytest.raises(WorkerError, match="behind the last byte"):
        decode_strictly("QR==", 10)  # one byte, and stray bits
    with pytest.raises(WorkerError) as caught:
        decode_strictly("not decoded at all!", 3)
    assert caught.value.code == "base64_too_long"
