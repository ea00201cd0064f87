"""The files that cases are about: from the case file's folder, or made by the demo."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.evaluation.case_files import Case, CaseFile
from sam2_mcp_worker.evaluation.runner import Planned


def plan_of(chosen: Sequence[tuple[CaseFile, Case]], out_dir: Path, target: str) -> list[Planned]:
    """Every case with its files and their hashes; `target` is whom it is for.

    Raises:
        WorkerError: `source_unreadable`, `demo_unknown` or `demo_extra_missing`.
    """
    paths: dict[tuple[int, str], Path] = {}
    hashes: dict[Path, str] = {}
    plan = []
    for file, case in chosen:
        for name in sorted(case.source_names):
            if (id(file), name) not in paths:
                paths[(id(file), name)] = path = _source(file, name, out_dir)
                hashes[path] = _sha256(path)
        own = {name: paths[(id(file), name)] for name in case.source_names}
        plan.append(
            Planned(file, case, own, file.digest(case, {name: hashes[path] for name, path in own.items()}, target))
        )
    return plan


def _source(file: CaseFile, name: str, out_dir: Path) -> Path:
    spec = file.sources[name]
    return _demo_file(spec.demo, out_dir) if spec.demo else file.folder / spec.path


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise WorkerError("source_unreadable", f"{path}: {error.strerror}", next_step="mend the case file") from error


def _demo_file(name: str, out_dir: Path) -> Path:
    """A file of the demo; what an earlier evaluation left in the folder is used again."""
    try:
        from sam2_mcp_worker.demo.filed import write_filed
        from sam2_mcp_worker.demo.fonts import find_fonts
        from sam2_mcp_worker.demo.leaflet import make_leaflet
        from sam2_mcp_worker.demo.leaflet_pictures import banner_picture, cover_page
    except ImportError as error:
        raise WorkerError(
            "demo_extra_missing", f"the leaflet needs {error.name}", next_step="pip install 'sam2-mcp[worker,demo]'"
        ) from error
    makers: dict[str, tuple[str, Callable[[Path], object]]] = {
        "leaflet": ("leaflet.pdf", make_leaflet),
        "filed": ("filed.xlsx", write_filed),
        "banner": ("banner.jpg", lambda path: path.write_bytes(banner_picture(find_fonts()).jpeg())),
        "cover": ("cover.jpg", lambda path: path.write_bytes(cover_page(find_fonts()).jpeg())),
    }
    if name not in makers:
        raise WorkerError("demo_unknown", f"the demo makes no {name!r}", rule=f"it makes {', '.join(makers)}")
    path = out_dir / makers[name][0]
    if not path.exists():  # a workbook holds the time when it was made
        makers[name][1](path)
    return path
