"""The work of the speech child: Whisper loaded once, then one piece of sound a call.

Runs in a child only: the server process imports nothing from here. The libraries would fetch what is missing from the
network, so that everything is looked at before they are asked, and they are told to stay off it.
"""

from __future__ import annotations

import os
import wave
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sam2_mcp_worker.engines.whisper import CHILD_ENV, COMPUTE_TYPE

os.environ.update(CHILD_ENV)  # read by the libraries at their import

import ctranslate2
import numpy as np
from faster_whisper import WhisperModel
from numpy.typing import NDArray

from sam2_mcp_worker.engines.whisper_weights import ready_folder
from sam2_mcp_worker.errors import WorkerError

SAMPLE_RATE_HZ = 16_000

_model: Any = None


def setup(config: dict[str, Any]) -> None:
    """Load the model: `weights` (see whisper_weights), `threads`.

    Raises:
        WorkerError: weights are missing or wrong, or cannot be loaded.
    """
    global _model
    folder = ready_folder(config["weights"])
    ctranslate2.set_random_seed(0)
    try:
        _model = WhisperModel(
            str(folder),
            device="cpu",
            compute_type=COMPUTE_TYPE,
            cpu_threads=int(config["threads"]),
            local_files_only=True,
        )
    except (RuntimeError, ValueError, OSError) as error:
        raise WorkerError(
            "weights_wrong",
            "the Whisper model has the expected SHA-256 but CTranslate2 cannot load it",
            rule="a multilingual Whisper model in CTranslate2 form",
            next_step="the operator corrects SAM2_MCP_WHISPER_MODEL_DIR and restarts the worker",
            private=str(error),
        ) from error


def transcribe(params: dict[str, Any]) -> dict[str, Any]:
    """The words of the WAV at `path`; `language` is a code, or None to detect it.

    Nothing is left out by the library: which words are believed is decided in checks/hearing.py, which says what was
    not. Only temperature 0, since the others are dice; beam 1 made fewer mistakes than 5 in a fifth of the time
    (reference/vision.md 5).

    Raises:
        WorkerError: `language_unsupported`.
    """
    _check_language(_loaded(), params["language"])
    segments, info = _loaded().transcribe(
        read_wav(Path(params["path"])),
        language=params["language"],
        beam_size=1,
        temperature=0.0,
        condition_on_previous_text=False,
        no_speech_threshold=None,
        log_prob_threshold=None,
        compression_ratio_threshold=None,
        vad_filter=False,
    )
    said = [
        {
            "start_s": float(segment.start),
            "end_s": float(segment.end),
            "text": segment.text,
            "no_speech_prob": float(segment.no_speech_prob),
            "mean_log_prob": float(segment.avg_logprob),
        }
        for segment in segments
    ]
    return {"said": said, "language": info.language}


TASKS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {"transcribe": transcribe}


def _check_language(model: Any, language: str | None) -> None:
    """The library would crash on a language that only newer models know, and hear English instead of any other."""
    multilingual: bool = model.model.is_multilingual
    known = model.hf_tokenizer.token_to_id(f"<|{language}|>") is not None if multilingual else language == "en"
    if language is not None and not known:
        raise WorkerError(
            "language_unsupported",
            f"this Whisper model does not know the language {language!r}",
            next_step="leave language out to have it detected",
        )


def _loaded() -> Any:
    if _model is None:
        raise WorkerError("engine_not_ready", "the speech child was asked before it was set up")
    return _model


def read_wav(path: Path) -> NDArray[np.float32]:
    """Samples from -1 to 1 of a 16 kHz mono WAV of 16 bits.

    Raises:
        WorkerError: `sound_format`, it is another: that is a defect of ours, pieces are cut so.
    """
    try:
        with wave.open(str(path), "rb") as sound:
            form = (sound.getframerate(), sound.getnchannels(), sound.getsampwidth())
            data = sound.readframes(sound.getnframes())
    except (wave.Error, EOFError, OSError) as error:
        raise WorkerError("sound_format", "the piece of sound is no WAV file", private=str(error)) from error
    if form != (SAMPLE_RATE_HZ, 1, 2):
        raise WorkerError("sound_format", f"the piece of sound is not 16 kHz mono with 16 bits but {form}")
    return np.frombuffer(data, "<i2").astype(np.float32) / np.float32(32768)
