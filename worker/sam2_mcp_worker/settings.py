"""Every setting of the worker: the one place that reads the environment.

Names are `SAM2_MCP_` plus the field in capitals. docs/configuration.md is generated from this class, so the
description of a field is its documentation.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.language_data import find_language_data
from sam2_mcp_worker.media.decoder import DECODER_MEMORY_LIMIT_BYTES, MAX_PIXELS

LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "::1")

CommaList = Annotated[tuple[str, ...], NoDecode]
# A thousand times the dearest price of today is a slip of the pen; and neither infinity nor NaN is an amount of money.
UsdPerMtok = Annotated[float, Field(ge=0, le=10_000, allow_inf_nan=False)]
UsdPair = Annotated[tuple[UsdPerMtok, UsdPerMtok], NoDecode]


def _default_data_dir() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "sam2-mcp"


def _is_sha256(text: str | None) -> bool:
    return text is not None and re.fullmatch(r"[0-9a-fA-F]{64}", text) is not None


class Settings(BaseSettings):
    """Worker settings; see the module docstring for how names map to the environment."""

    model_config = SettingsConfigDict(env_prefix="SAM2_MCP_", extra="ignore", frozen=True)

    host: str = Field("127.0.0.1", description="Address to listen on. Beyond loopback a token is required.")
    port: int = Field(8765, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    token: SecretStr | None = Field(
        None, description="Bearer token that every request except health checks must carry."
    )
    token_file: Path | None = Field(None, description="File that holds the token; used when SAM2_MCP_TOKEN is not set.")
    allowed_hosts: CommaList = Field(
        (),
        description="Extra Host header values, comma separated, e.g. `worker:8765,host.docker.internal`. "
        "`:*` stands for any port. Loopback names are always allowed.",
    )
    allowed_origins: CommaList = Field((), description="Browser origins that may call, comma separated.")

    data_dir: Path = Field(
        default_factory=_default_data_dir, description="Uploads, artifacts, cached readings and work directories."
    )
    allowed_roots: CommaList = Field(
        (), description="Folders whose files a `source` path may name, comma separated. None by default."
    )
    allowed_url_hosts: CommaList = Field(
        (),
        description="Hosts whose https URLs a `source` may name, comma separated. None by default: nothing is fetched.",
    )

    # 27 s is the bridge's own deadline (30 s at the host minus transport); a longer wish is cut to it.
    call_budget_s: float = Field(27.0, gt=0.5, le=3600, description="Longest time a tool call may take, seconds.")
    # Serialising 40,000 characters and a report took under 0.4 s on two busy cores.
    reply_margin_s: float = Field(
        1.0, ge=0.1, le=10, description="Kept free at the end of a call for the answer itself."
    )
    background_limit_s: float = Field(
        600.0, ge=0, le=86400, description="How long unfinished work goes on after the last call for it."
    )
    # The hard kill for one native step. The slowest honest step takes 2.5 s, on a busy machine 4 times as long.
    step_timeout_s: float = Field(
        20.0, gt=0, le=600, description="A single step (a page, a tile, an embedding, a frame) is killed after this."
    )

    max_upload_bytes: int = Field(
        512 * 1024**2, ge=1, description="Largest file that POST /files and https sources accept."
    )
    max_request_bytes: int = Field(4 * 1024**2, ge=1024, description="Largest MCP request body.")
    max_picture_pixels: int = Field(MAX_PIXELS, ge=1, description="Largest picture or rendered page, in pixels.")
    max_pages: int = Field(2000, ge=1, description="Largest PDF, in pages.")
    # Hosts cut or refuse above 50,000 characters (tool-rules.md 10).
    result_max_chars: int = Field(40_000, ge=4000, le=1_000_000, description="Most characters in one tool result.")

    retention_h: float = Field(
        24.0, gt=0, description="Uploads, artifacts and cached readings live this long after use."
    )
    files_max_bytes: int = Field(4 * 1024**3, ge=0, description="Disk for uploads; the longest unused go first.")
    artifacts_max_bytes: int = Field(2 * 1024**3, ge=0, description="Disk for artifacts; the longest unused go first.")
    cache_max_bytes: int = Field(1024**3, ge=0, description="Disk for cached readings; the longest unused go first.")

    # An unfinished tracking keeps 10-60 MB of the engine's memory, a finished one small pictures of its frames.
    tracks_max_bytes: int = Field(
        2 * 1024**3, ge=0, description="Disk for what track_video goes on from; the longest unused go first."
    )

    ocr_processes: int = Field(0, ge=0, le=64, description="OCR child processes; 0 means one per core, at most 4.")
    decoder_processes: int = Field(2, ge=1, le=64, description="Child processes that decode PDFs and images.")
    decoder_memory_bytes: int = Field(
        DECODER_MEMORY_LIMIT_BYTES, ge=256 * 1024**2, description="Address space of one decoder or redaction child."
    )
    ocr_languages: CommaList = Field(("kor",), description="Languages to read, by their traineddata names.")
    tessdata_dir: Path | None = Field(
        None, description="Folder with <language>.traineddata; searched for when not set."
    )
    segmenter: Literal["auto", "sam2", "onnx", "off"] = Field(
        "auto",
        description="Engine that cuts masks: `sam2` (needs the extra [sam] and weights), `onnx` (a SAM encoder and "
        "decoder pair), `off`, or `auto`: the first of these that is there.",
    )
    sam_model: Literal["sam2.1_hiera_tiny", "sam2.1_hiera_small", "sam2.1_hiera_base_plus", "sam2.1_hiera_large"] = (
        Field(
            "sam2.1_hiera_tiny",
            description="Size of SAM 2.1; larger ones are slower, 30 s on two cores are meant for tiny.",
        )
    )
    models_dir: Path | None = Field(
        None, description="Where `sam2-mcp-worker models fetch` keeps weights; by default `models` in the data folder."
    )
    sam_weights: Path | None = Field(
        None, description="Own SAM 2.1 weights (.pt or .safetensors) of SAM2_MCP_SAM_MODEL."
    )
    sam_weights_sha256: str | None = Field(None, description="SHA-256 of SAM2_MCP_SAM_WEIGHTS; required with it.")
    sam_onnx_encoder: Path | None = Field(None, description="Encoder of a SAM pair in ONNX (MobileSAM, EdgeSAM ...).")
    sam_onnx_encoder_sha256: str | None = Field(None, description="Its SHA-256; required with it.")
    sam_onnx_decoder: Path | None = Field(None, description="Decoder of the pair.")
    sam_onnx_decoder_sha256: str | None = Field(None, description="Its SHA-256; required with it.")
    sam_threads: int = Field(0, ge=0, le=64, description="Threads of one inference; 0 means one per core.")
    # SAM 2.1 at 1024 px keeps 17 MB per picture, MobileSAM 4 MB: about 15 or 64 pictures.
    embedding_cache_bytes: int = Field(
        256 * 1024**2, ge=0, description="Memory for embedded pictures, so that further prompts cost the decoder only."
    )
    # 1.8 MB an object at 512 px, whatever the clip's length: room for hundreds of trackings.
    track_memory_bytes: int = Field(
        1024**3, ge=0, description="Memory for the sessions of track_video; the longest unused go first."
    )
    max_track_frames: int = Field(600, ge=2, description="Most frames that one tracking may follow.")
    # Memory does not grow with the length; a film of four hours has 30,000 samples at the default interval.
    max_video_s: float = Field(14_400.0, gt=0, description="Longest video or recording, seconds.")
    anthropic_api_key: SecretStr | None = Field(
        None,
        validation_alias=AliasChoices("ANTHROPIC_API_KEY", "anthropic_api_key"),
        description="Key of the Claude API. With it reading and finding go to Claude, which costs money and sends "
        "pictures to Anthropic (or to ANTHROPIC_BASE_URL); without it nothing leaves this machine.",
    )
    anthropic_base_url: str | None = Field(
        None,
        validation_alias=AliasChoices("ANTHROPIC_BASE_URL", "anthropic_base_url"),
        description="Address of the Messages API or of a gateway to it; Anthropic's own when not set.",
    )
    vision: Literal["auto", "off"] = Field(
        "auto", description="`auto`: Claude when ANTHROPIC_API_KEY is set; `off`: never, whatever is set."
    )
    claude_fast_model: str = Field("claude-haiku-5-5", description="Model of mode `fast`.")
    claude_accurate_model: str = Field("claude-sonnet-5-5", description="Model of mode `accurate`.")
    # Six tiles of a leaflet by the accurate model passed 30 s, one or two did not (shared/mission.md).
    vision_fast_above_tiles: int = Field(
        2, ge=0, description="Mode `auto` takes the fast model when a call needs more tiles than this."
    )
    # The field's 8,000 and 12,000 held a dense tile; the tokenizer since then takes about 30 % more for the same text.
    claude_fast_max_tokens: int = Field(10_400, ge=256, le=128_000, description="Most output tokens of the fast model.")
    claude_accurate_max_tokens: int = Field(
        15_600, ge=256, le=128_000, description="Most output tokens of the accurate model."
    )
    claude_effort: Literal["low", "medium", "high"] = Field(
        "low", description="Effort that the models are asked for: reading needs no thinking."
    )
    # 8 made calls pass 30 s, 24 were no better (shared/mission.md).
    vision_in_flight: int = Field(16, ge=1, le=256, description="Requests to Claude at once, of all calls together.")
    # Above these the standard tier scales a picture down, which makes fine print unreadable (reference/vision.md 1).
    claude_tile_side_px: int = Field(1568, ge=64, le=8000, description="Longest side of a picture sent to Claude.")
    claude_tile_tokens: int = Field(
        1568, ge=16, le=10_000, description="Most visual tokens (28 x 28 px each) of a picture sent to Claude."
    )
    # The API counts 5 MiB of Base64.
    claude_image_bytes: int = Field(
        3_700_000, ge=10_000, description="Most bytes of an encoded picture, before Base64."
    )
    claude_oversized_image_error: bool = Field(
        True,
        description="Ask the API to refuse a picture that it would scale down. Gateways that do not know the field get "
        "requests without it after their first complaint.",
    )
    claude_daily_cap_usd: float = Field(
        10.0,
        ge=0,
        le=1_000_000,
        allow_inf_nan=False,
        description="Most US dollars a day (UTC); a request that could pass it is not sent.",
    )
    # List prices of late 2026; what is counted against the cap.
    claude_fast_usd_per_mtok: UsdPair = Field(
        (0.10, 0.50), description="Price of the fast model, US dollars per million tokens: input,output."
    )
    claude_accurate_usd_per_mtok: UsdPair = Field(
        (2.0, 10.0), description="Price of the accurate model, US dollars per million tokens: input,output."
    )
    # A dense tile takes the fast model 13 s and the accurate one 21 s (shared/mission.md).
    vision_tile_limit_s: float = Field(
        25.0, gt=0.1, le=600, description="Longest time for one tile, retries included; what arrived by then is kept."
    )
    openai_api_key: SecretStr | None = Field(
        None,
        validation_alias=AliasChoices("OPENAI_API_KEY", "openai_api_key"),
        description="Key of an OpenAI-compatible speech endpoint. With it transcribe_audio sends sound to "
        "OPENAI_BASE_URL, which costs money; without it no sound leaves this machine.",
    )
    openai_base_url: str | None = Field(
        None,
        validation_alias=AliasChoices("OPENAI_BASE_URL", "openai_base_url"),
        description="Address below which `audio/transcriptions` is found; OpenAI's own when not set.",
    )
    speech: Literal["auto", "openai", "whisper", "off"] = Field(
        "auto",
        description="Engine that hears: `openai` (needs OPENAI_API_KEY), `whisper` (the extra [speech] and weights), "
        "`off`, or `auto`: the first of these that is there.",
    )
    speech_model: str = Field("whisper-1", description="Model of the endpoint; it has to tell times of segments.")
    # OpenAI's list price of late 2026 for whisper-1.
    speech_usd_per_minute: float = Field(
        0.006, ge=0, le=100, allow_inf_nan=False, description="Price of a minute of sound at the endpoint, US dollars."
    )
    speech_daily_cap_usd: float = Field(
        5.0,
        ge=0,
        le=1_000_000,
        allow_inf_nan=False,
        description="Most US dollars a day (UTC) for speech; a request that could pass it is not sent.",
    )
    speech_in_flight: int = Field(4, ge=1, le=64, description="Requests to the endpoint at once.")
    # 30 s of speech come back in 2 to 5 s; the rest is room for retries.
    speech_piece_limit_s: float = Field(
        25.0, gt=0.1, le=600, description="Longest time for one piece of sound, retries included."
    )
    # An own key, not OPENAI_API_KEY: who pays for hearing has not agreed to send texts.
    embeddings_api_key: SecretStr | None = Field(
        None,
        description="Key of an OpenAI-compatible embeddings endpoint. With it check_phrases sends lines of documents "
        "to SAM2_MCP_EMBEDDINGS_BASE_URL to find paraphrases (costs money); without it no text leaves this machine.",
    )
    embeddings_base_url: str | None = Field(
        None, description="Address below which `embeddings` is found; OpenAI's own when not set."
    )
    embeddings_model: str = Field("text-embedding-3-small", description="Model of the embeddings endpoint.")
    # Not measured here, for want of a key. Below it a sentence is of the same subject rather than of the same meaning.
    embeddings_min_likeness: float = Field(
        0.6, ge=0, le=1, description="Likeness in meaning (0-1) from which a sentence is shown for a person to look at."
    )
    # OpenAI's list price of late 2026 for text-embedding-3-small.
    embeddings_usd_per_mtok: float = Field(
        0.02, ge=0, le=100, allow_inf_nan=False, description="Price of the embeddings, US dollars per million tokens."
    )
    embeddings_daily_cap_usd: float = Field(
        1.0,
        ge=0,
        le=1_000_000,
        allow_inf_nan=False,
        description="Most US dollars a day (UTC) for embeddings; a request that could pass it is not sent.",
    )
    whisper_model_dir: Path | None = Field(
        None, description="Folder with a Whisper model in CTranslate2 form (model.bin, config.json, tokenizer.json)."
    )
    whisper_model_sha256: str | None = Field(None, description="SHA-256 of its model.bin; required with it.")
    whisper_threads: int = Field(0, ge=0, le=64, description="Threads of local Whisper; 0 means one per core.")
    rule_pack: str = Field(
        "korean_insurance_ads",
        description="Rule pack that check_phrases and check_figures judge by, and whose labels are looked for where a "
        "call names none: a name, or the path of a .toml (docs/rule-packs.md).",
    )
    max_image_block_bytes: int = Field(
        700 * 1024, ge=1024, description="Most bytes of one picture or sound inside a result; larger ones are links."
    )
    log_level: str = Field("INFO", description="DEBUG, INFO, WARNING or ERROR; logs go to stderr.")

    @field_validator(
        "allowed_hosts",
        "allowed_origins",
        "allowed_roots",
        "allowed_url_hosts",
        "ocr_languages",
        "claude_fast_usd_per_mtok",
        "claude_accurate_usd_per_mtok",
        mode="before",
    )
    @classmethod
    def _split_commas(cls, value: Any) -> Any:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    @field_validator(
        "anthropic_api_key",
        "anthropic_base_url",
        "openai_api_key",
        "openai_base_url",
        "embeddings_api_key",
        "embeddings_base_url",
        mode="before",
    )
    @classmethod
    def _empty_is_unset(cls, value: Any) -> Any:
        return None if isinstance(value, str) and not value.strip() else value

    @model_validator(mode="after")
    def _margin_fits(self) -> Settings:
        if self.reply_margin_s >= self.call_budget_s:
            raise ValueError("SAM2_MCP_REPLY_MARGIN_S must be shorter than SAM2_MCP_CALL_BUDGET_S")
        return self

    @model_validator(mode="after")
    def _own_weights_have_hashes(self) -> Settings:
        for name in ("sam_weights", "sam_onnx_encoder", "sam_onnx_decoder"):
            if getattr(self, name) is not None and not _is_sha256(getattr(self, f"{name}_sha256")):
                variable = f"SAM2_MCP_{name.upper()}"
                raise ValueError(f"{variable} needs {variable}_SHA256, the 64 hexadecimal digits of its SHA-256")
        if self.whisper_model_dir is not None and not _is_sha256(self.whisper_model_sha256):
            raise ValueError(
                "SAM2_MCP_WHISPER_MODEL_DIR needs SAM2_MCP_WHISPER_MODEL_SHA256, the 64 hexadecimal digits of the "
                "SHA-256 of its model.bin"
            )
        if (self.sam_onnx_encoder is None) != (self.sam_onnx_decoder is None):
            raise ValueError("SAM2_MCP_SAM_ONNX_ENCODER and SAM2_MCP_SAM_ONNX_DECODER go together")
        return self

    def read_token(self) -> str | None:
        """The bearer token, from the variable or the file; None when neither is set.

        Raises:
            WorkerError: the token file is missing or empty.
        """
        if self.token is not None and self.token.get_secret_value():
            return self.token.get_secret_value()
        if self.token_file is None:
            return None
        try:
            text = self.token_file.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise WorkerError(
                "token_file_unreadable",
                f"SAM2_MCP_TOKEN_FILE names {self.token_file}, which cannot be read ({error.strerror})",
                next_step="create the file or unset the variable",
            ) from error
        if not text:
            raise WorkerError(
                "token_file_empty",
                f"SAM2_MCP_TOKEN_FILE names {self.token_file}, which is empty",
                next_step="write the token into it or unset the variable",
            )
        return text

    def check_bind(self) -> None:
        """Refuse to serve beyond loopback without a token.

        Raises:
            WorkerError: the address is reachable from other machines and no token is set.
        """
        if self.host not in LOOPBACK_HOSTS and self.read_token() is None:
            raise WorkerError(
                "token_required",
                f"host {self.host} is reachable from other machines and no token is set",
                rule="without a token the worker only listens on 127.0.0.1, localhost or ::1",
                next_step="set SAM2_MCP_TOKEN or SAM2_MCP_TOKEN_FILE",
            )

    def find_tessdata(self) -> Path:
        """The folder that holds the traineddata of all languages.

        Raises:
            WorkerError: no folder holds them; the text says how to install them.
        """
        return find_language_data(self.tessdata_dir, self.ocr_languages, os.environ.get("TESSDATA_PREFIX"))

    @property
    def weights_dir(self) -> Path:
        """Where fetched weights and what was made of them lie."""
        return self.models_dir or self.data_dir / "models"

    @property
    def ocr_process_count(self) -> int:
        """OCR children to start: more than 4 only on request, since each holds about 300 MB."""
        return self.ocr_processes or min(4, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2)
