"""Reads the memory of this machine and its GPUs, and checks that a server fits."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

from nlsom.errors import ModelUnavailable, UsageError
from nlsom_serve.vllm.plan import GIB, plan
from nlsom_serve.vllm.profiles import Profile


async def memory(profile: Profile) -> tuple[float | None, float | None]:
    """Free and total memory in GiB of the device that a profile runs on; None if none is found.

    Of several GPUs that the profile may use, the minimum of each.
    """
    if profile.facts.device == "cpu":
        return await asyncio.to_thread(_main_memory)
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return None, None
    process = await asyncio.create_subprocess_exec(
        tool,
        "--query-gpu=memory.free,memory.total",
        "--format=csv,noheader,nounits",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    said, _ = await process.communicate()
    visible = profile.facts.env.get("CUDA_VISIBLE_DEVICES", os.environ.get("CUDA_VISIBLE_DEVICES", ""))
    return read_gpus(said.decode(), visible)


def read_gpus(said: str, visible: str) -> tuple[float | None, float | None]:
    """Parses nvidia-smi's lines `free, total` (MiB) for the visible GPUs (`0,2`; empty for all).

    Returns:
        The minimum of each in GiB; None without GPUs.
    """
    gpus = [tuple(float(mib) / 1024 for mib in line.split(",")) for line in said.splitlines() if "," in line]
    chosen = [gpus[int(n)] for n in visible.split(",") if n.isdigit() and int(n) < len(gpus)] or gpus
    return (min(gpu[0] for gpu in chosen), min(gpu[1] for gpu in chosen)) if chosen else (None, None)


def _main_memory() -> tuple[float, float]:
    lines = (line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    kib = {key: int(rest.split()[0]) for key, rest in lines if key in {"MemAvailable", "MemTotal"}}
    return kib["MemAvailable"] / (1 << 20), kib["MemTotal"] / (1 << 20)


async def check(profile: Profile) -> None:
    """Checks that a server fits into memory; passes if its size or the device's is unknown.

    Raises:
        ModelUnavailable: It does not fit, or other processes hold the memory.
    """
    free, total = await memory(profile)
    try:
        made = await asyncio.to_thread(plan, profile, total_gib=total)
    except UsageError:
        return  # a size is unknown, such as that of a model to be downloaded: vLLM checks itself
    shown = "\n  ".join(made.lines)
    if not made.fits:
        raise ModelUnavailable(
            f"{profile.name} does not fit: {made.cache_gib:.1f} GiB are left for a KV cache that needs "
            f"{made.token_bytes * made.context / GIB:.1f} GiB\n  {shown}\n"
            "Lower max-model-len, use a smaller or quantized model, or more GPUs (tensor-parallel-size)."
        )
    if free is not None and made.budget_gib > free:
        raise ModelUnavailable(
            f"{profile.name} needs {made.budget_gib:.1f} GiB, of which {free:.1f} GiB are free\n  {shown}\n"
            "Stop what holds the memory (`nlsom models down`, `nvidia-smi`), or lower the profile's share."
        )
