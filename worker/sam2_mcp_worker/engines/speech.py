"""Which engines hear: chosen from the settings and from what is installed, without loading any of it."""

from __future__ import annotations

from dataclasses import dataclass

from sam2_mcp_worker.engines.speech_ports import Transcriber
from sam2_mcp_worker.engines.whisper import LocalWhisper, build_pool, packages_missing
from sam2_mcp_worker.engines.whisper_weights import MODEL_FILE, find_weights
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.execution.pool import ChildPool
from sam2_mcp_worker.settings import Settings

SET_KEY = "sets OPENAI_API_KEY (requests then cost money and sound leaves the machine)"
INSTALL = "installs sam2-mcp[speech,whisper-base] (local, low quality)"


@dataclass(frozen=True, slots=True)
class SpeechChoice:
    """The engines in the order in which they are asked, and the pool of the local one.

    `missing` says why there is none, with the mend; None where there is one.
    """

    transcribers: tuple[Transcriber, ...]
    pool: ChildPool | None
    missing: WorkerError | None


def choose_speech(settings: Settings) -> SpeechChoice:
    """The engines that the setting allows and that are there. An endpoint comes first, local Whisper stands in.

    Nothing is asked yet. With a key the HTTP client is imported: call it before serving.
    """
    if settings.speech == "off":
        what = "transcription is switched off (SAM2_MCP_SPEECH=off)"
        return SpeechChoice((), None, _not_available(what, "ask the operator to switch it on"))
    transcribers: list[Transcriber] = []
    if settings.speech in ("auto", "openai") and _has_key(settings):
        from sam2_mcp_worker.engines.openai_speech import build_openai_speech

        transcribers.append(build_openai_speech(settings))
    pool = None
    if settings.speech in ("auto", "whisper") and _whisper_lacks(settings) is None:
        weights = find_weights(settings)
        assert weights is not None, "nothing is lacking"
        pool = build_pool(weights, settings.whisper_threads)
        transcribers.append(LocalWhisper(pool, weights=weights))
    return SpeechChoice(tuple(transcribers), pool, None if transcribers else _missing(settings))


def _has_key(settings: Settings) -> bool:
    key = settings.openai_api_key
    return key is not None and bool(key.get_secret_value().strip())


def _whisper_lacks(settings: Settings) -> WorkerError | None:
    """What local Whisper lacks, if anything."""
    absent = packages_missing()
    if absent:
        what = f"local Whisper needs {', '.join(absent)}, which this worker has not installed"
        return _not_available(what, f"the operator {INSTALL} and restarts the worker")
    own = settings.whisper_model_dir
    if own is not None:
        if (own / MODEL_FILE).is_file():
            return None
        what = f"SAM2_MCP_WHISPER_MODEL_DIR names {own.name}, which holds no {MODEL_FILE}"
        return _not_available(what, "the operator sets the folder of a Whisper model in CTranslate2 form")
    if find_weights(settings) is None:
        return _not_available(
            "local Whisper has no weights",
            "the operator installs sam2-mcp[whisper-base], or sets SAM2_MCP_WHISPER_MODEL_DIR, and restarts the worker",
        )
    return None


def _missing(settings: Settings) -> WorkerError:
    whisper_lacks = _whisper_lacks(settings)
    if settings.speech == "whisper":
        assert whisper_lacks is not None
        return whisper_lacks
    if settings.speech == "openai":
        what = "transcription by an endpoint needs a key, and none is set (SAM2_MCP_SPEECH=openai)"
        return _not_available(what, f"the operator {SET_KEY} and restarts the worker")
    about = "" if whisper_lacks is None or settings.whisper_model_dir is None else f"; {whisper_lacks.what}"
    return _not_available(
        f"transcription needs a speech engine, and none is set up{about}",
        f"the operator {SET_KEY}, or {INSTALL}, and restarts the worker",
    )


def _not_available(reason: str, mend: str) -> WorkerError:
    return WorkerError("not_available", reason, next_step=mend)
