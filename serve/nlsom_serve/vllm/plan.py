"""Estimates from a model's config.json whether a server fits into memory, and shows the calculation.

A rough guide for choosing a profile: vLLM measures the exact memory when it starts.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from nlsom.errors import UsageError
from nlsom_serve.vllm.profiles import Profile
from nlsom_serve.vllm.shape import Shape, shape_of

GIB = 1 << 30
_GPU_OVERHEAD = 2.0
"""GiB per GPU for the CUDA context, activations and captured graphs; more with very long batches."""
_CPU_OVERHEAD = 2.4
"""GiB that the three processes of a CPU server take besides weights and cache (measured, vLLM 0.32)."""
_CPU_CACHE = 4.0
"""GiB that vLLM's CPU build takes for its KV cache by default (VLLM_CPU_KVCACHE_SPACE)."""
_BYTES = {
    "float32": 4.0,
    "float": 4.0,
    "fp8": 1.0,
    "int8": 1.0,
    "awq": 0.56,
    "gptq": 0.56,
    "bitsandbytes": 0.56,
}


@dataclass(frozen=True, slots=True)
class Plan:
    """The estimated memory of one server, per GPU (on CPU: of the whole machine).

    Attributes:
        profile: The profile's name.
        weights_gib: Weights.
        overhead_gib: Everything but weights and KV cache; assumed.
        budget_gib: What the server may take.
        total_gib: Memory of the device.
        token_bytes: KV cache bytes per token.
        context: Longest sequence in tokens.
        lines: The calculation, for people.
    """

    profile: str
    weights_gib: float
    overhead_gib: float
    budget_gib: float
    total_gib: float
    token_bytes: float
    context: int
    lines: tuple[str, ...]

    @property
    def cache_gib(self) -> float:
        """What is left for the KV cache; negative if weights and overhead alone do not fit."""
        return self.budget_gib - self.weights_gib - self.overhead_gib

    @property
    def sequences(self) -> float:
        """How many sequences of full length fit into the KV cache."""
        return max(0.0, self.cache_gib) * GIB / (self.token_bytes * self.context)

    @property
    def fits(self) -> bool:
        """Whether one sequence of full length fits."""
        return self.sequences >= 1


def plan(profile: Profile, *, total_gib: float | None = None) -> Plan:
    """Estimates the memory of a server.

    Args:
        profile: The server's profile.
        total_gib: Memory of the device in GiB; by default the profile's `gpu_memory_gib`.

    Raises:
        UsageError: The model's dimensions are neither in a config.json on this machine nor in the profile, or
            the device's memory is unknown.
    """
    folder = find_folder(profile.model)
    measured = weights_bytes(folder) if folder else None
    shape = profile.facts.shape
    if shape is None:
        if folder is None:
            raise UsageError(
                f"{profile.name}: {profile.model} is not on this machine, so its config.json cannot be read; "
                "download it, or write `nlsom.shape` in the profile"
            )
        config = json.loads((folder / "config.json").read_text())
        shape = shape_of(config, source=str(folder / "config.json"))
    total = total_gib or profile.facts.gpu_memory_gib
    if total is None:
        raise UsageError(
            f"{profile.name}: no GPU is found; write `nlsom.gpu_memory_gib` in the profile to plan for one"
        )
    return estimate(profile, shape, total_gib=total, measured=measured)


def estimate(profile: Profile, shape: Shape, *, total_gib: float, measured: int | None = None) -> Plan:
    """The calculation of `plan`.

    Args:
        profile: The server's profile.
        shape: The model's dimensions.
        total_gib: Memory of the device in GiB.
        measured: Bytes of the model's weight files, if they are on this machine.
    """
    on_cpu = profile.facts.device == "cpu"
    tensor, pipe = (int(profile.number(f"{kind}-parallel-size", 1)) for kind in ("tensor", "pipeline"))
    kind = str(profile.vllm.get("quantization") or profile.vllm.get("dtype") or "auto")
    width = _BYTES.get(kind, 2.0)
    weights = (measured if measured else shape.parameters * width) / GIB / (tensor * pipe)
    cache_kind = str(profile.vllm.get("kv-cache-dtype", "auto"))
    cache_width = (
        1.0 if cache_kind.startswith(("fp8", "int8")) else 4.0 if kind.startswith("float32") else 2.0
    )
    heads = max(1, shape.kv_heads // tensor)
    token = shape.kv_numbers(heads) * cache_width / pipe
    context = int(profile.number("max-model-len", shape.context))
    overhead = _CPU_OVERHEAD if on_cpu else _GPU_OVERHEAD
    gpus = f" / {tensor * pipe} GPUs" if tensor * pipe > 1 else ""

    if on_cpu:
        cache = float(profile.facts.env.get("VLLM_CPU_KVCACHE_SPACE", _CPU_CACHE))
        budget = min(total_gib, weights + overhead + cache)
        allowed = (
            f"budget    {cache:g} GiB of cache (VLLM_CPU_KVCACHE_SPACE) and the above: "
            f"{budget:.1f} of {total_gib:.1f} GiB"
        )
    else:
        share = profile.number("gpu-memory-utilization", 0.92)
        budget = share * total_gib
        allowed = f"budget    {share:g} × {total_gib:.1f} GiB = {budget:.1f} GiB a GPU"
    left = budget - weights - overhead
    whole = token * context / GIB
    kept = (
        f"{shape.layers} layers × {shape.latent} numbers"
        if shape.latent
        else (f"2 × {shape.layers} layers × {heads} heads × {shape.head_dim}")
    )
    size = (
        f"files of {measured / GIB:.2f} GiB"
        if measured
        else f"{shape.parameters / 1e9:.2f} B parameters × {width:g} bytes"
    )
    lines = (
        f"weights   {size}{gpus} = {weights:.2f} GiB",
        f"overhead  context, activations, graphs: {overhead:g} GiB (assumed)",
        allowed,
        f"a token   {kept} × {cache_width:g} bytes = {token / 1024:.1f} KiB of keys and values",
        f"a prompt  × {context:,} tokens = {whole:.2f} GiB at full length",
        f"cache     {budget:.1f} - {weights:.1f} - {overhead:g} = {left:.1f} GiB"
        f" = {max(0.0, left) * GIB / token:,.0f} tokens = {max(0.0, left) / whole:.1f} such prompts",
    )
    return Plan(profile.name, weights, overhead, budget, total_gib, token, context, lines)


def find_folder(model: str) -> Path | None:
    """The model's folder on this machine: its path, or its newest snapshot in the hub's cache; else None."""
    path = Path(model)
    if path.is_absolute():
        return path if (path / "config.json").is_file() else None
    hub = os.environ.get("HF_HUB_CACHE") or Path(os.environ.get("HF_HOME") or "~/.cache/huggingface") / "hub"
    cached = Path(hub).expanduser() / f"models--{model.replace('/', '--')}" / "snapshots"
    found = list(cached.glob("*/config.json"))
    return max(found, key=lambda config: config.stat().st_mtime).parent if found else None


def weights_bytes(folder: Path) -> int | None:
    """Bytes of a model's safetensors files, as its index says if there is one; None without such files."""
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        return int(json.loads(index.read_text())["metadata"]["total_size"])
    return sum(file.stat().st_size for file in folder.glob("*.safetensors")) or None
