"""What the report says in words about one page: its texts, numbered as in its picture, its regions and its notes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sam2_mcp_worker.pipelines.report_html import both, language_attribute, points, text_html, words_for

# A page of dense print holds about 6,000 characters; a hostile text layer holds millions and would freeze the tab.
MAX_TEXT_CHARACTERS = 100_000
# More boxes on one page are a pattern, not findings; the result lists them all.
MAX_REGIONS = 500
SOURCE_WORDS = {"text_layer": ("text layer", "텍스트"), "ocr": ("OCR", "문자 인식"), "none": ("none", "없음")}


def page_words(page: Mapping[str, Any]) -> str:
    """The page's right-hand side: what became of it, its texts, its regions, its notes."""
    parts = []
    if page["status"] != "done":
        english, korean = {
            "failed": ("This page could not be read.", "이 쪽은 읽지 못했습니다."),
            "unreached": ("This page was not reached.", "이 쪽은 아직 읽지 않았습니다."),
        }.get(page["status"], ("The state of this page is not known.", "이 쪽의 상태를 알 수 없습니다."))
        reason = f"<br>{text_html(page['reason'])}" if page.get("reason") else ""
        kind = "trouble unreached" if page["status"] == "unreached" else "trouble"
        parts.append(f'<p class="{kind}">{both(english, korean)}{reason}</p>')
    texts = _numbered_lines(page) if page.get("lines") else _plain_texts(page)
    if page["status"] == "done" and not texts:
        texts.append(f"<p>{_nothing_read(page)}</p>")
    parts += [*texts, *_regions(page)]
    if page.get("notes"):
        parts.append('<ul class="notes">' + "".join(f"<li>{text_html(note)}</li>" for note in page["notes"]) + "</ul>")
    return "\n".join(parts)


def _numbered_lines(page: Mapping[str, Any]) -> list[str]:
    """The lines with the numbers that their boxes have in the picture."""
    shown, room = [], MAX_TEXT_CHARACTERS
    for number, line in enumerate(page["lines"], start=1):
        room -= len(line["text"])
        if room < 0:
            break
        kind = line["source"] if line["source"] in SOURCE_WORDS else "none"
        text = line["text"]
        shown.append(f'<li value="{number}" class="{kind}" dir="auto"{language_attribute(text)}>{text_html(text)}</li>')
    heading = both("Text, numbered as in the picture", "번호는 그림과 같음")
    parts = [f'<h3>{heading}</h3>\n<ol class="lines">\n' + "\n".join(shown) + "\n</ol>"]
    if len(shown) < len(page["lines"]):
        parts.append(_left_out(len(page["lines"]) - len(shown), "lines"))
    return parts


def _regions(page: Mapping[str, Any]) -> list[str]:
    """What was found of the labels; nothing at all is said where none were asked for."""
    regions, reason = page.get("regions"), page.get("regions_reason")
    parts = []
    if regions:
        heading = both("Regions, numbered as in the picture", "찾은 영역")
        items = "\n".join(_region(region) for region in regions[:MAX_REGIONS])
        parts.append(f'<h3>{heading}</h3>\n<ol class="lines">\n{items}\n</ol>')
        if len(regions) > MAX_REGIONS:
            parts.append(_left_out(len(regions) - MAX_REGIONS, "regions"))
    elif regions is not None and not reason:
        parts.append(f"<p>{both('None of the labels was found on this page.', '찾는 영역이 이 쪽에 없습니다.')}</p>")
    if reason:
        words = both("Regions may be missing here.", "이 쪽에는 찾지 못한 영역이 있을 수 있습니다.")
        parts.append(f'<p class="trouble unreached">{words}<br>{text_html(reason)}</p>')
    return parts


def _region(region: Mapping[str, Any]) -> str:
    height = region.get("text_height_pt")
    facts = [
        region["label"],
        f"{region['confidence']:.0%}",
        *([f"text {points(height)}"] if height is not None else []),
    ]
    label = text_html(" · ".join(facts))
    return f'<li value="{region["number"]}" class="region" dir="auto"{language_attribute(label)}>{label}</li>'


def _plain_texts(page: Mapping[str, Any]) -> list[str]:
    parts = []
    source = page.get("source") or "none"
    if page.get("text"):
        english, korean = words_for(SOURCE_WORDS, source)
        kind = source if source in SOURCE_WORDS else "none"
        parts.append(f"<h3>{both(f'Text ({english})', korean)}</h3>{_block(page['text'], kind)}")
    if page.get("ocr_text"):
        heading = both("Read by OCR where the text layer has nothing", "텍스트 레이어 밖에서 읽음")
        parts.append(f"<h3>{heading}</h3>{_block(page['ocr_text'], 'ocr')}")
    return parts


def _nothing_read(page: Mapping[str, Any]) -> str:
    if page.get("undetected_ink"):
        return both("Something was seen here, but nothing could be read.", "무언가 보이지만 읽지 못했습니다.")
    return both("No text was found on this page.", "이 쪽에서는 글자를 찾지 못했습니다.")


def _block(text: str, kind: str) -> str:
    shown = text[:MAX_TEXT_CHARACTERS]
    block = f'<pre class="text {kind}" dir="auto"{language_attribute(shown)}>{text_html(shown)}</pre>'
    return block + (_left_out(len(text) - len(shown), "characters") if len(text) > len(shown) else "")


def _left_out(count: int, what: str) -> str:
    return f"<p>{count:,} more {what} are left out here; the inspection's result holds them.</p>"
