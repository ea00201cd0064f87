"""What every report is set in: one HTML file that is complete in itself, and the pieces that its cards are made of.

Pictures are data URIs, nothing is loaded, nothing runs. All that comes from a file is hostile until escaped, and a
content security policy stands behind the escaping.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from string import Template

from sam2_mcp_worker.pipelines.report_html import both, text_html

JPEG_SIGNATURE = b"\xff\xd8\xff"
CSS = (Path(__file__).parent / "report.css").read_text(encoding="utf-8")
# The style sheet is allowed by its hash, so that not even a style attribute from outside has an effect.
CSP = (
    "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; style-src 'sha256-"
    + base64.b64encode(hashlib.sha256(CSS.encode("utf-8")).digest()).decode("ascii")
    + "'"
)

DOCUMENT = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="$csp">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>$name: $kind, $created</title>
<style>$css</style>
</head>
<body>
<div class="band"><header>
<p class="kicker">$kicker</p>
<h1 dir="auto">$name</h1>
<p class="facts">$created · $how $engine</p>
</header></div>
<main>
$main
</main>
<footer>This file is complete in itself: it loads nothing and runs no script. $footer
</footer>
</body>
</html>
""")


INSPECTION = ("Inspection report", "검사 보고서")


def document(
    *,
    name: str,
    created_at: str,
    engine: str,
    main: str,
    footer: str,
    kind: tuple[str, str] = INSPECTION,
    how: str = "read with",
) -> str:
    """The whole file. `main` is HTML; the rest is escaped here.

    Args:
        name: of the inspected file.
        created_at: ISO 8601.
        engine: who read it.
        footer: how sizes and times are to be read, a sentence.
        kind: what kind of report it is, in English and Korean.
        how: what `engine` has to do with it.
    """
    return DOCUMENT.substitute(
        csp=text_html(CSP),
        kind=text_html(kind[0].lower()),
        kicker=both(*kind),
        how=text_html(how),
        css=CSS,
        name=text_html(name),
        created=text_html(_minute(created_at)),
        engine=text_html(engine),
        main=main,
        footer=text_html(footer),
    )


def _minute(iso: str) -> str:
    """An ISO time as people read it, with its offset; anything else as it is."""
    try:
        return datetime.fromisoformat(iso).strftime("%Y-%m-%d %H:%M %Z").strip()
    except ValueError:
        return iso


def say(english: str, korean: str) -> str:
    """The sentences that a verdict begins with."""
    return f'<p class="say">{text_html(english)}</p>\n<p class="say" lang="ko">{text_html(korean)}</p>\n'


def figures_html(figures: Iterable[tuple[int | str, str, str]]) -> str:
    """Values with their English and Korean names, side by side."""
    listed = (
        f"<div><dt>{both(en, ko)}</dt><dd>{text_html(f'{value:,}' if isinstance(value, int) else value)}</dd></div>"
        for value, en, ko in figures
    )
    return f'<dl class="figures">{"".join(listed)}</dl>'


def column_heads(columns: Iterable[tuple[str, str, str]]) -> str:
    """The head of a table: English, Korean and class of each column."""
    return "".join(f'<th scope="col" class="{kind}">{both(en, ko)}</th>' for en, ko, kind in columns)


def inlined(jpeg: bytes, alt: str) -> str:
    """A picture inside the file."""
    data = base64.b64encode(jpeg).decode("ascii")
    return f'<img src="data:image/jpeg;base64,{data}" alt="{text_html(alt)}">'
