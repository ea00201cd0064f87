"""Base images without a registry: Debian by debootstrap, with this machine's way to the package index.

Three releases for three Pythons. What debootstrap made is kept as an archive outside the checkout; the settings of the
machine (certificates, index) go into the base image alone and are read when it is made, so that nothing in the
project's own Dockerfiles and in no commit speaks of them.

Bytecode is taken out, as in Python's own images, which is what these stand for.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from tests.containers.engine import docker, run

SUITES = {"3.11": "bookworm", "3.13": "trixie", "3.14": "forky"}
# The images of the stack: the newest release that is also stable.
STACK_SUITE = "trixie"

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sam2-mcp" / "containers"
INCLUDE = "python3,python3-venv,ca-certificates"
# debootstrap knows a release by its script, and all current ones share one.
SCRIPTS = Path("/usr/share/debootstrap/scripts")

CERTIFICATES = "/usr/local/share/this-machine.pem"
# What pip may be told about the index; a folder of this machine means nothing in a container.
INDEX_SETTINGS = ("index-url", "extra-index-url", "trusted-host")


class Bases:
    """Makes all base images at once, in the background; `image` waits for one."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(len(SUITES))
        first = sorted(SUITES.values(), key=lambda suite: suite != STACK_SUITE)
        self._images: dict[str, Future[str]] = {suite: self._pool.submit(_make, suite) for suite in first}

    def image(self, suite: str) -> str:
        """The image's name."""
        return self._images[suite].result()

    def close(self) -> None:
        self._pool.shutdown()


def _make(suite: str) -> str:
    root_image = f"sam2-mcp-root:{suite}-{_recipe()}"
    if not docker("images", "-q", root_image):
        docker("import", str(_archive(suite)), root_image)
    with tempfile.TemporaryDirectory() as context:
        certificates = _pip_settings().get("cert", "")
        bundle = Path(certificates).read_bytes() if certificates else b""
        Path(context, "certificates.pem").write_bytes(bundle)
        Path(context, "Dockerfile").write_text(_dockerfile(root_image, bool(bundle)), encoding="utf-8")
        image = f"sam2-mcp-base:{suite}"
        docker("build", "-q", "-t", image, context)
    return image


def _recipe() -> str:
    """Changes with the way in which an archive is made: one of another kind is of no use."""
    return hashlib.sha256((INCLUDE + inspect.getsource(_debootstrap)).encode()).hexdigest()[:12]


def _archive(suite: str) -> Path:
    archive = CACHE / f"{suite}-{_recipe()}.tar"
    if not archive.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        for outdated in CACHE.glob(f"{suite}-*.tar*"):
            outdated.unlink()
        root = Path(tempfile.mkdtemp(prefix=f"{suite}-", dir=CACHE))
        try:
            _debootstrap(suite, root)
            unfinished = archive.with_suffix(".tar.part")
            run("tar", "--directory", str(root), "--one-file-system", "--create", "--file", str(unfinished), ".")
            unfinished.replace(archive)
        finally:
            shutil.rmtree(root, ignore_errors=True)
    return archive


def _debootstrap(suite: str, root: Path) -> None:
    script = next(path for path in (SCRIPTS / suite, SCRIPTS / "sid") if path.exists())
    # An empty mirror is debootstrap's own default.
    run("debootstrap", "--variant=minbase", f"--include={INCLUDE}", suite, str(root), "", str(script))
    for folder in list(root.rglob("__pycache__")):
        shutil.rmtree(folder)
    for waste in [*root.glob("var/cache/apt/archives/*.deb"), *root.glob("var/lib/apt/lists/*_*")]:
        waste.unlink()


def _pip_settings() -> dict[str, str]:
    """What pip on this machine goes by; its environment beats its files, which it lists from far to near."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, encoding="utf-8", check=True
    ).stdout
    pairs = [line.partition("=") for line in listed.splitlines()]
    settings = [(name, ast.literal_eval(value)) for name, _, value in pairs]
    settings.sort(key=lambda setting: setting[0].startswith(":env:"))
    return {name.rpartition(".")[2]: value for name, value in settings}


def _dockerfile(root_image: str, with_certificates: bool) -> str:
    settings = _pip_settings()
    variables = {"PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    for name in INDEX_SETTINGS:
        usable = [word for word in settings.get(name, "").split() if not word.startswith(("file:", "/"))]
        if usable:
            variables[f"PIP_{name.replace('-', '_').upper()}"] = " ".join(usable)
    if with_certificates:
        variables["PIP_CERT"] = CERTIFICATES
    lines = [f"FROM {root_image}", f"COPY certificates.pem {CERTIFICATES}"]
    return "\n".join([*lines, *(f'ENV {name}="{value}"' for name, value in variables.items())]) + "\n"
