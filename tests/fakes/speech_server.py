"""A scripted speech endpoint on loopback: `audio/transcriptions` as OpenAI serves it, which knows what it is sent.

    sound = join(said("the premium may rise"), silence(3))
    with speech_server([KnownSound.of(sound)], SpeechScript(faults=[rate_limited(), None])) as fake:
        settings = Settings(data_dir=..., **fake.settings())

It finds by exact samples which stretch of known sound a piece is, and answers with what is said there. Every request is
held against the API's real rules first; what breaks one is refused as the API would refuse it and is in
`fake.refused`. `fake.requests` records what came, `fake.unknown` counts pieces of no known sound.
"""

from __future__ import annotations

import asyncio
import io
import time
import wave
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse, StreamingResponse
from starlette.datastructures import FormData, UploadFile
from tests.fakes.claude_script import Fault
from tests.fakes.loopback import PATIENCE_S, serving_app
from tests.fakes.speech_script import SpeechScript
from tests.fakes.speech_sounds import RATE_HZ, Sound, Spoken

MAX_FILE_BYTES = 26_214_400
FORMATS = ("json", "text", "srt", "verbose_json", "vtt")
SUFFIXES = ("flac", "m4a", "mp3", "mp4", "mpeg", "mpga", "oga", "ogg", "wav", "webm")
FIELDS = {"file", "model", "language", "prompt", "response_format", "temperature", "timestamp_granularities[]"}
_CONNECTION_LOST = 499


@dataclass(frozen=True)
class KnownSound:
    """Sound whose truth is known: 16 kHz mono, 16 bits little endian. With `repeated` it goes on by starting anew, so
    that hours of it need no memory."""

    name: str
    samples: bytes
    spoken: tuple[Spoken, ...]
    repeated: bool = False

    @classmethod
    def of(cls, sound: Sound, name: str = "sound", *, repeated: bool = False) -> KnownSound:
        """A sound of speech_sounds."""
        return cls(name, sound.samples.astype("<i2").tobytes(), sound.spoken, repeated)

    @property
    def duration_s(self) -> float:
        return len(self.samples) / 2 / RATE_HZ

    def find(self, piece: bytes) -> float | None:
        """Where it begins, seconds; None when it is of another sound. A repeated one is found in its first round."""
        sound = self.samples
        if self.repeated:
            sound *= 2 + len(piece) // max(1, len(sound))
        at = sound.find(piece)
        while at % 2 and at >= 0:
            at = sound.find(piece, at + 1)
        return None if at < 0 else at / 2 / RATE_HZ

    def within(self, start_s: float, end_s: float) -> list[Spoken]:
        """What is said there, in times of the sound; words that reach beyond are clipped."""
        rounds = int(end_s // self.duration_s) + 1 if self.repeated else 1
        shifted = [
            Spoken(one.start_s + number * self.duration_s, one.end_s + number * self.duration_s, one.text)
            for number in range(rounds)
            for one in self.spoken
        ]
        return [
            Spoken(max(one.start_s, start_s), min(one.end_s, end_s), one.text)
            for one in shifted
            if one.start_s < end_s and start_s < one.end_s
        ]


@dataclass
class Heard:
    """One request to audio/transcriptions. `status` 499 says that the client went away before the end."""

    number: int
    started_s: float
    status: int = 0
    fields: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    duration_s: float = 0.0
    place: tuple[str, float] | None = None
    """Which known sound, and where in it the piece begins."""
    fault: str = ""
    ended_s: float = 0.0


class Refusal(Exception):
    def __init__(self, status: int, message: str, code: str | None = None, kind: str = "invalid_request_error") -> None:
        super().__init__(message)
        self.status, self.message, self.code, self.kind = status, message, code, kind


@dataclass
class FakeSpeech:
    """What was asked. `script` may be exchanged at any time by `play`; its `faults` then start anew."""

    sounds: list[KnownSound]
    script: SpeechScript
    port: int = 0
    requests: list[Heard] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    paths: Counter[str] = field(default_factory=Counter)
    in_flight: int = 0
    in_flight_max: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def settings(self) -> dict[str, Any]:
        """Arguments for the worker's Settings: this endpoint alone, local Whisper does not stand in."""
        return {"openai_api_key": self.script.key, "openai_base_url": self.url, "speech": "openai"}

    @property
    def unknown(self) -> int:
        return sum(heard.place is None for heard in self.requests)

    def play(self, script: SpeechScript) -> None:
        """Another script from now on, and records that begin anew."""
        self.script, self.requests, self.refused, self.in_flight_max = script, [], [], self.in_flight

    # The rest runs in the server's thread.

    async def transcriptions(self, request: Request) -> Response:
        self.paths[f"{request.method} {request.url.path}"] += 1
        script = self.script
        heard = Heard(len(self.requests), time.monotonic(), _CONNECTION_LOST, headers=_public_headers(request))
        self.requests.append(heard)
        self.in_flight += 1
        self.in_flight_max = max(self.in_flight, self.in_flight_max)
        try:
            response = await self._answer(request, script, heard)
        except Refusal as refusal:
            if refusal.status not in (401, 404):
                self.refused.append(f"{refusal.status} {refusal.message}")
            response = _error(refusal.status, refusal.message, refusal.kind, refusal.code)
        finally:
            self.in_flight -= 1
            heard.ended_s = time.monotonic()
        heard.status = response.status_code
        return response

    async def _answer(self, request: Request, script: SpeechScript, heard: Heard) -> Response:
        _check_key(request, script)
        async with request.form() as form:
            wav = await _checked_file(form, heard)
        _check_fields(heard.fields, script)
        piece = _samples(wav)
        heard.duration_s = len(piece) / 2 / RATE_HZ
        sound, at_s = await asyncio.to_thread(self._locate, piece)
        heard.place = (sound.name, at_s) if sound else None
        fault = _fault(script, heard) or Fault("")
        heard.fault = fault.name
        random = Random(f"{script.seed}/{heard.number}")
        await _pause(request, (script.latency.draw(random) + fault.delay_s) * script.time_scale)
        if fault.html:
            return PlainTextResponse(fault.html, fault.status, dict(fault.headers), "text/html")
        if fault.status >= 400:
            headers = dict(fault.headers)
            code = headers.pop("x-error-code", "") or None
            return _error(fault.status, fault.message, fault.error, code, headers)
        if fault.ending == "stall":
            await _pause(request, PATIENCE_S)
        if fault.ending == "reset":
            return StreamingResponse(_broken_off(), headers={"content-length": "1000"}, media_type="application/json")
        said = sound.within(at_s, at_s + heard.duration_s) if sound else []
        return self._told(script, heard, at_s, said, fault)

    def _locate(self, piece: bytes) -> tuple[KnownSound | None, float]:
        for sound in self.sounds:
            at_s = sound.find(piece)
            if at_s is not None:
                return sound, at_s
        return None, 0.0

    @staticmethod
    def _told(script: SpeechScript, heard: Heard, at_s: float, said: list[Spoken], fault: Fault) -> Response:
        segments = [
            _segment(number, one.start_s - at_s, one.end_s - at_s, f" {one.text}") for number, one in enumerate(said)
        ]
        if not said:
            segments = [
                _segment(number, 0.0, heard.duration_s, "") | invented for number, invented in enumerate(script.invents)
            ]
        text = "".join(segment["text"] for segment in segments).strip()
        seconds = -(-heard.duration_s // 1)
        told: dict[str, Any] = {"text": text, "usage": {"type": "duration", "seconds": seconds}}
        if heard.fields.get("response_format") == "verbose_json" and script.verbose:
            language = script.language
            told |= {"task": "transcribe", "language": language, "duration": heard.duration_s, "segments": segments}
        told |= script.tells
        if fault.answer:
            told = fault.answer(told)
        response = JSONResponse(told)
        if fault.rewrite:
            return Response(fault.rewrite(bytes(response.body).decode()), 200, media_type="application/json")
        return response

    async def model(self, request: Request, model_id: str) -> Response:
        self.paths[f"{request.method} {request.url.path}"] += 1
        try:
            _check_key(request, self.script)
        except Refusal as refusal:
            return _error(refusal.status, refusal.message, refusal.kind, refusal.code)
        if not self.script.models_endpoint:
            return PlainTextResponse("Not Found", 404)
        if model_id not in self.script.models:
            return _error(404, f"The model '{model_id}' does not exist", "invalid_request_error", "model_not_found")
        return JSONResponse({"id": model_id, "object": "model", "created": 1677532384, "owned_by": "openai-internal"})

    def app(self) -> FastAPI:
        app = FastAPI(openapi_url=None)
        app.add_api_route("/v1/audio/transcriptions", self.transcriptions, methods=["POST"], response_model=None)
        app.add_api_route("/v1/models/{model_id}", self.model, methods=["GET"], response_model=None)
        return app


def _check_key(request: Request, script: SpeechScript) -> None:
    if request.headers.get("authorization") != f"Bearer {script.key}":
        raise Refusal(401, "Incorrect API key provided.", "invalid_api_key")


async def _checked_file(form: FormData, heard: Heard) -> bytes:
    unknown = set(form.keys()) - FIELDS
    if unknown:
        raise Refusal(400, f"Unrecognized request argument supplied: {sorted(unknown)[0]}")
    upload = form.get("file")
    if not isinstance(upload, UploadFile):
        raise Refusal(400, "you must provide a file")
    heard.fields = {name: str(value) for name, value in form.multi_items() if name != "file"}
    if (upload.filename or "").rpartition(".")[2].lower() not in SUFFIXES:
        raise Refusal(400, f"Invalid file format. Supported formats: {list(SUFFIXES)}")
    data = await upload.read()
    if len(data) > MAX_FILE_BYTES:
        raise Refusal(413, f"413: Maximum content size limit ({MAX_FILE_BYTES}) exceeded", kind="server_error")
    return data


def _check_fields(fields: dict[str, str], script: SpeechScript) -> None:
    model, language, how = fields.get("model", ""), fields.get("language"), fields.get("response_format", "json")
    if model not in script.models:
        raise Refusal(404, f"The model `{model}` does not exist or you do not have access to it.", "model_not_found")
    if how not in FORMATS:
        raise Refusal(400, f"Invalid value for response_format: {how}")
    if how == "verbose_json" and not script.verbose and not script.ignores:
        raise Refusal(
            400, f"response_format 'verbose_json' is not compatible with model '{model}'", "unsupported_value"
        )
    if "timestamp_granularities[]" in fields and how != "verbose_json":
        raise Refusal(400, "timestamp_granularities needs response_format verbose_json")
    if language is not None and not (2 <= len(language) <= 3 and language.isalpha() and language.islower()):
        raise Refusal(400, f"Invalid language '{language}'. Language parameter must be specified in ISO-639-1 format.")
    if not 0 <= float(fields.get("temperature", "0")) <= 1:
        raise Refusal(400, "temperature must be between 0 and 1")


def _samples(wav: bytes) -> bytes:
    try:
        with wave.open(io.BytesIO(wav)) as sound:
            form = (sound.getframerate(), sound.getnchannels(), sound.getsampwidth())
            data = sound.readframes(sound.getnframes())
    except (wave.Error, EOFError):
        raise Refusal(400, "Audio file might be corrupted or unsupported", "invalid_value") from None
    if form != (RATE_HZ, 1, 2):  # the API takes others, too; ours is never to send them
        raise Refusal(400, f"Audio file of another form than agreed: {form}")
    if len(data) / 2 / RATE_HZ < 0.1:
        raise Refusal(400, "Audio file is too short. Minimum audio length is 0.1 seconds.", "audio_too_short")
    return data


def _fault(script: SpeechScript, heard: Heard) -> Fault | None:
    if heard.number < len(script.faults):
        return script.faults[heard.number]
    if script.choose is not None:
        return script.choose(heard.number, heard.place[1] if heard.place else None)
    return script.always


def _segment(number: int, start_s: float, end_s: float, text: str) -> dict[str, Any]:
    return {
        "id": number,
        "seek": 0,
        "start": start_s,
        "end": end_s,
        "text": text,
        "tokens": [50364, 440, 50464],
        "temperature": 0.0,
        "avg_logprob": -0.25,
        "compression_ratio": 1.1,
        "no_speech_prob": 0.01,
    }


def _error(
    status: int, message: str, kind: str, code: str | None, headers: dict[str, str] | None = None
) -> JSONResponse:
    error = {"message": message, "type": kind, "param": None, "code": code}
    return JSONResponse({"error": error}, status, headers)


async def _pause(request: Request, seconds: float) -> None:
    """Wait, unless the client goes away."""
    until_s = time.monotonic() + seconds
    while (left_s := until_s - time.monotonic()) > 0 and not await request.is_disconnected():
        await asyncio.sleep(min(0.05, left_s))


async def _broken_off() -> AsyncIterator[bytes]:
    yield b'{"text": "'
    raise ConnectionResetError("as the script wants")


def _public_headers(request: Request) -> dict[str, str]:
    return {name: value for name, value in request.headers.items() if name != "authorization"}


def wav_bytes(samples: bytes) -> bytes:
    """A WAV file of 16 kHz mono samples."""
    with io.BytesIO() as file:
        with wave.open(file, "wb") as sound:
            sound.setnchannels(1)
            sound.setsampwidth(2)
            sound.setframerate(RATE_HZ)
            sound.writeframes(samples)
        return file.getvalue()


@contextmanager
def speech_server(sounds: Iterable[KnownSound] = (), script: SpeechScript | None = None) -> Iterator[FakeSpeech]:
    """Serves until the end of the block."""
    fake = FakeSpeech(list(sounds), script or SpeechScript())
    with serving_app(fake.app()) as port:
        fake.port = port
        yield fake
