"""`rules lint | show`: rule packs looked over for their authors, and what holds on a day."""

from __future__ import annotations

import argparse
import json
import sys
from datetime import date
from typing import Any

from sam2_mcp_worker.checks.rule_lint import Problem, lint
from sam2_mcp_worker.checks.rule_packs import SECTIONS, RulePack, Sourced, load_rule_pack, pack_bytes, rule_pack_names
from sam2_mcp_worker.checks.rule_packs.schema import Dated
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.settings import Settings


def add_parser(commands: Any) -> argparse.ArgumentParser:
    """Declare the command."""
    parser: argparse.ArgumentParser = commands.add_parser("rules", help="rule packs: look them over, show what holds")
    parser.add_argument("action", choices=("lint", "show"))
    parser.add_argument(
        "packs",
        nargs="*",
        metavar="PACK",
        help="names, or paths that end in .toml; lint: by default all that come along and yours; show: yours",
    )
    parser.add_argument("--date", type=_day, default=None, metavar="YYYY-MM-DD", help="the day; by default today")
    return parser


def run(arguments: argparse.Namespace) -> int:
    """0: no errors; 1: a pack has errors or cannot be read."""
    day = arguments.date or date.today()
    if arguments.action == "show":
        return _show(arguments.packs or [Settings().rule_pack], day, as_json=arguments.json)
    names = arguments.packs or list(dict.fromkeys([*rule_pack_names(), Settings().rule_pack]))
    looked = {name: _looked_over(name, day) for name in names}
    if arguments.json:
        packs = [{"pack": name, "problems": [_as_json(one) for one in found]} for name, found in looked.items()]
        sys.stdout.write(json.dumps({"date": day.isoformat(), "packs": packs}, ensure_ascii=False) + "\n")
    else:
        for name, found in looked.items():
            _print(name, found)
    return int(any(one.level == "error" for found in looked.values() for one in found))


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text[:20]!r} is no day; give it as 2026-01-02") from error


def _looked_over(name: str, day: date) -> tuple[Problem, ...]:
    try:
        return lint(pack_bytes(name)[1], day)
    except WorkerError as error:
        return (Problem("error", error.public_text),)


def _as_json(problem: Problem) -> dict[str, str]:
    return {"level": problem.level, "what": problem.what}


def _print(name: str, found: tuple[Problem, ...]) -> None:
    errors = sum(one.level == "error" for one in found)
    sys.stdout.write(f"{name}: {errors} errors, {len(found) - errors} warnings\n")
    for one in found:
        sys.stdout.write(f"  {one.level:7} {one.what}\n")


def _show(names: list[str], day: date, *, as_json: bool) -> int:
    packs = [load_rule_pack(name) for name in names]
    if as_json:
        shown = {"date": day.isoformat(), "packs": [_pack_as_json(pack, day) for pack in packs]}
        sys.stdout.write(json.dumps(shown, ensure_ascii=False) + "\n")
        return 0
    for pack in packs:
        holding = pack.on(day)
        sys.stdout.write(f"{pack.name}, version {pack.version}: {pack.title}; on {day}\n")
        for section, rule in _rules(holding):
            sys.stdout.write(f"  {section:9} {rule.id:28} {rule.basis:8} {pack.source_of(rule)}\n")
            for text in getattr(rule, "texts", None) or [", ".join(getattr(rule, "words", ()))]:
                sys.stdout.write(f"            {text}\n")
        for section, held in _sections(holding).items():
            sys.stdout.write(f"  {section:38} {held.basis:8} {pack.source_of(held)}\n")
            for field, value in _asked(held).items():
                sys.stdout.write(f"            {field} {value}\n")
    return 0


def _pack_as_json(pack: RulePack, day: date) -> dict[str, Any]:
    rules = [
        {"section": section, **rule.model_dump(mode="json", exclude_defaults=True), "source": pack.source_of(rule)}
        for section, rule in _rules(pack.on(day))
    ]
    sections = {
        name: {**_asked(held), "basis": held.basis, "source": pack.source_of(held)}
        for name, held in _sections(pack).items()
    }
    about = {"pack": pack.name, "version": pack.version, "title": pack.title}
    return about | {"rules": rules, "sections": sections, "verdict": pack.verdict.model_dump(mode="json")}


def _sections(pack: RulePack) -> dict[str, Sourced]:
    """The sections that the pack has; what the mark of a review tells is one, too."""
    held = {name: getattr(pack, name) for name in SECTIONS}
    held["seal.format"] = pack.seal.format if pack.seal is not None else None
    return {name: section for name, section in held.items() if section is not None}


def _asked(section: Sourced) -> dict[str, Any]:
    """What a section asks for, without its source."""
    apart = {"basis", "law", "article", "note", "format"}
    return section.model_dump(mode="json", exclude=apart, exclude_none=True)


def _rules(pack: RulePack) -> list[tuple[str, Dated]]:
    sections: tuple[tuple[str, tuple[Dated, ...]], ...] = (
        ("phrases", pack.phrases),
        ("stale", pack.stale),
        ("forbidden", pack.forbidden),
    )
    return [(name, rule) for name, rules in sections for rule in rules]
