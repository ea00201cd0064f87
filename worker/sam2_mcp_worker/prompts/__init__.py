"""What agents are told about our results, in Korean and English, beside the tools that make them.

Owns the texts: a Markdown file per prompt and language, and parts that several prompts share (the rules, the states of
results, the labels). Refuses to know MCP. A change of what a result means changes these files too; tests hold every
tool, field and state they name against the tools' models (tests/contract/test_prompts.py).
"""

from __future__ import annotations

from pathlib import Path
from string import Template
from typing import Literal, get_args

FOLDER = Path(__file__).parent
Language = Literal["ko", "en"]
LANGUAGES: tuple[Language, ...] = get_args(Language)
PARTS = ("rules", "phrase_states", "figure_states", "labels")


def instruction(name: str, language: Language, values: dict[str, str]) -> str:
    """The prompt `name` with its parts, and with `values` at their places.

    A `$` inside a value stays as it is: values are put in last, and once. `values` holds what the prompt asks for
    (`$source` ...) and `discretion`.
    """
    whole = Template(text_of(name, language)).safe_substitute({part: text_of(part, language) for part in PARTS})
    return Template(whole).substitute(values)


def text_of(name: str, language: Language) -> str:
    """A prompt or a part of one as it stands in its file."""
    return (FOLDER / f"{name}.{language}.md").read_text(encoding="utf-8").strip()
