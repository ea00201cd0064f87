"""What `doctor` finds about speech: the endpoint with its model and costs of the day, local Whisper. Spends nothing.

Whether Whisper's weights are right and load is found out with all other processes.
"""

from __future__ import annotations

from sam2_mcp_worker.cli.provider_way import spent_today, way_to, with_way
from sam2_mcp_worker.engines.openai_speech import DEFAULT_ADDRESS, OpenAISpeech
from sam2_mcp_worker.engines.speech import choose_speech
from sam2_mcp_worker.settings import Settings


async def speech_finding(settings: Settings) -> str:
    """The state in one line. No engine is a state that may be meant; a key that does not work is a failure.

    Raises:
        WorkerError: asking the endpoint is useless, with the reason and the mend.
    """
    choice = choose_speech(settings)
    if choice.missing is not None:
        return f"off: {choice.missing.public_text}"
    told = []
    for engine in choice.transcribers:
        if isinstance(engine, OpenAISpeech):
            told += await _endpoint(engine, settings.openai_base_url or DEFAULT_ADDRESS)
        else:
            told.append(f"{engine.name}{' stands in' if told else ''}, quality {engine.quality}")
    return "; ".join(told)


async def _endpoint(engine: OpenAISpeech, base_url: str) -> list[str]:
    try:
        engine.check_ledger()
        error = await engine.check_model()
        trouble = engine.trouble or error
        if trouble is not None:
            raise with_way(trouble, base_url)
        status = engine.status()
    finally:
        await engine.close()
    return [f"sound goes to {way_to(base_url)}", f"{status['model']} {status['state']}", spent_today(status["today"])]
