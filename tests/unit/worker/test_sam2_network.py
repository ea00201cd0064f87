"""Weights of SAM 2.1: only the right tensors of a checked file become a network; all else is refused and named."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save, save_file
from tests.fakes.sam2_weights import TINY, RandomWeights, random_weights

from sam2_mcp_worker.engines.sam2_network import MODELS, State, build_network, load_network, use_threads
from sam2_mcp_worker.errors import WorkerError


@pytest.fixture(scope="module")
def weights() -> RandomWeights:
    return random_weights()


@pytest.fixture(scope="module")
def state(weights: RandomWeights) -> State:
    return load_network(weights.model, weights.path, weights.sha256).state_dict()


def write(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    return hashlib.sha256(content).hexdigest()


def checkpoint(content: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(content, buffer)
    return buffer.getvalue()


def refusal(path: Path, sha256: str, model: str = TINY) -> WorkerError:
    with pytest.raises(WorkerError) as caught:
        load_network(model, path, sha256)
    assert str(path.parent) not in caught.value.public_text
    return caught.value


@pytest.mark.parametrize("model", MODELS)
def test_every_size_has_the_parts_that_only_2_1_has(model: str) -> None:
    network = build_network(model)
    names = set(network.state_dict())
    assert {"no_obj_embed_spatial", "obj_ptr_tpos_proj.weight", "obj_ptr_tpos_proj.bias"} <= names
    assert not network.training
    assert not any(parameter.requires_grad for parameter in network.parameters())


def test_an_unknown_size_is_refused_with_the_known_ones() -> None:
    with pytest.raises(WorkerError, match=r"model_unknown.*sam2.1_hiera_tiny"):
        build_network("sam2_hiera_tiny")


def test_missing_weights_name_the_command_that_fetches_them(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.pt", tmp_path):
        error = refusal(path, "0" * 64)
        assert error.code == "weights_missing"
        assert "models fetch sam2.1_hiera_tiny" in error.public_text


def test_a_file_of_another_hash_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    class NeverParsed:
        def __reduce__(self) -> tuple[Any, ...]:
            return (os.mkdir, (str(tmp_path / "parsed"),))

    path = tmp_path / "weights.pt"
    path.write_bytes(checkpoint(NeverParsed()))
    assert refusal(path, "0" * 64).code == "weights_wrong"
    assert not (tmp_path / "parsed").exists()


def test_a_checkpoint_that_would_run_code_is_refused_and_runs_none(tmp_path: Path, state: State) -> None:
    ran = tmp_path / "ran"

    class Payload:
        def __reduce__(self) -> tuple[Any, ...]:
            return (os.mkdir, (str(ran),))

    content = checkpoint({"model": {**state, "payload": Payload()}})
    path = tmp_path / "weights.pt"
    error = refusal(path, write(path, content))
    assert error.code == "weights_unsafe"
    assert not ran.exists()
    torch.load(io.BytesIO(content), weights_only=False)  # proves that the file is armed
    assert ran.exists()


def test_an_armed_plain_pickle_is_refused_and_runs_none(tmp_path: Path) -> None:
    path = tmp_path / "weights.pt"
    content = b"cos\nmkdir\n(S'" + str(tmp_path / "ran").encode("ascii") + b"'\ntR."
    assert refusal(path, write(path, content)).code == "weights_unsafe"
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
@pytest.mark.parametrize("kept", [0.0, 0.3, 0.999])
def test_a_truncated_file_is_refused_even_when_its_hash_was_given(tmp_path: Path, suffix: str, kept: float) -> None:
    tensors = {"a": torch.arange(4096.0)}
    content = save(tensors) if suffix == ".safetensors" else checkpoint(tensors)
    path = tmp_path / f"weights{suffix}"
    assert refusal(path, write(path, content[: int(len(content) * kept)])).code == "weights_wrong"


@pytest.mark.parametrize("content", [[1, 2], {"a": 1}, torch.zeros(2), {"model": {"a": [1]}}])
def test_a_checkpoint_of_other_things_than_tensors_is_refused(tmp_path: Path, content: Any) -> None:
    path = tmp_path / "weights.pt"
    assert refusal(path, write(path, checkpoint(content))).code == "weights_wrong"


def test_tensors_of_another_architecture_are_named_briefly(tmp_path: Path, state: State) -> None:
    other = {name: tensor for name, tensor in state.items() if not name.startswith("memory_encoder")}
    other["unheard_of"] = torch.zeros(1)
    other["no_mem_embed"] = torch.zeros(2)
    path = tmp_path / "weights.pt"
    error = refusal(path, write(path, checkpoint(other)))
    assert error.code == "weights_wrong"
    for part in (
        "missing (memory_encoder",
        "1 tensors unknown (unheard_of)",
        "1 tensors of another shape (no_mem_embed)",
    ):
        assert part in error.public_text
    assert len(error.public_text) < 500


def test_weights_of_another_size_do_not_fit(weights: RandomWeights) -> None:
    assert refusal(weights.path, weights.sha256, "sam2.1_hiera_small").code == "weights_wrong"


def test_a_half_precision_checkpoint_below_a_model_key_loads_as_float32(tmp_path: Path, state: State) -> None:
    halves = {name: tensor.half() for name, tensor in state.items()}
    path = tmp_path / "weights.pt"
    network = load_network(TINY, path, write(path, checkpoint({"model": halves})).upper())
    loaded = network.state_dict()
    assert {tensor.dtype for tensor in loaded.values()} == {torch.float32}
    assert all(torch.equal(loaded[name], halves[name].float()) for name in halves)
    assert not any(parameter.requires_grad for parameter in network.parameters())


def test_safetensors_load_bit_by_bit(tmp_path: Path, state: State) -> None:
    path = tmp_path / "weights.safetensors"
    save_file(state, path)
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    loaded = load_network(TINY, path, sha256).state_dict()
    assert all(torch.equal(loaded[name], tensor) for name, tensor in state.items())


SEALED = """
import os, sys
seen = []
NETWORK = ("socket.", "urllib.", "http.", "ftplib.", "smtplib.")
STARTED = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn")
def watch(event, args):
    if event.startswith(NETWORK + STARTED) and "ldconfig" not in str(args):  # torch asks it for libraries
        seen.append((event, str(args)[:200]))
sys.addaudithook(watch)
from pathlib import Path
from sam2_mcp_worker.engines.sam2_network import load_network, use_threads
network = load_network(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
use_threads(2)
import torch
assert torch.get_num_threads() == 2
network.set_imgsz((128, 128))
with torch.inference_mode():
    network.forward_image(torch.zeros(1, 3, 128, 128))
print(seen, file=sys.stderr)
sys.exit(3 if seen else 0)
"""


def test_loading_and_inferring_opens_no_socket_installs_nothing_and_prints_nothing(
    weights: RandomWeights, tmp_path: Path
) -> None:
    kept = {"PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV"}
    environment = {name: value for name, value in os.environ.items() if name in kept}
    done = subprocess.run(
        [sys.executable, "-c", SEALED, weights.model, str(weights.path), weights.sha256],
        env={**environment, "HOME": str(tmp_path), "TMPDIR": str(tmp_path), "COVERAGE_PROCESS_START": ""},
        capture_output=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode("utf-8")
    assert done.stdout == b""
    assert list(tmp_path.rglob("*")) == []  # no settings file, neither at home nor left behind in the temp folder


def test_the_number_of_threads_is_ours() -> None:
    before = torch.get_num_threads()
    try:
        use_threads(2)
        assert torch.get_num_threads() == 2
    finally:
        use_threads(before)
