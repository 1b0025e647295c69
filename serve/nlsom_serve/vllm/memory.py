"""The memory of this machine's GPUs, or of the machine, and whether a server's plan fits it."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

from nlsom.errors import ModelUnavailable, UsageError
from nlsom_serve.vllm.plan import GIB, plan
from nlsom_serve.vllm.profiles import Profile


async def memory(profile: Profile) -> tuple[float | None, float | None]:
    """Free and whole memory in GiB of the device that a profile runs on; None where no device is found.

    Of several GPUs that the profile may use, the least of each.
    """
    if profile.facts.device == "cpu":
        return await asyncio.to_thread(_of_machine)
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
    """Reads `free, total` lines in MiB, one a GPU, of the GPUs that are visible (`0,2`; empty for all)."""
    gpus = [tuple(float(mib) / 1024 for mib in line.split(",")) for line in said.splitlines() if "," in line]
    chosen = [gpus[int(n)] for n in visible.split(",") if n.isdigit() and int(n) < len(gpus)] or gpus
    return (min(gpu[0] for gpu in chosen), min(gpu[1] for gpu in chosen)) if chosen else (None, None)


def _of_machine() -> tuple[float, float]:
    lines = (line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    kib = {key: int(rest.split()[0]) for key, rest in lines if key in {"MemAvailable", "MemTotal"}}
    return kib["MemAvailable"] / (1 << 20), kib["MemTotal"] / (1 << 20)


async def check(profile: Profile) -> None:
    """Refuses a server that cannot fit; says nothing where too little is known to tell.

    Raises:
        ModelUnavailable: It cannot fit, or others hold the memory that it needs.
    """
    free, total = await memory(profile)
    try:
        made = await asyncio.to_thread(plan, profile, total_gib=total)
    except UsageError:
        return  # its size, or the device's, is not known before the model is downloaded: vLLM will tell
    shown = "\n  ".join(made.lines)
    if not made.fits:
        raise ModelUnavailable(
            f"{profile.name} does not fit: {made.cache_gib:.1f} GiB are left for a cache that needs "
            f"{made.token_bytes * made.context / GIB:.1f} GiB\n  {shown}\n"
            "Lower max-model-len, take a smaller or quantized model, or more GPUs (tensor-parallel-size)."
        )
    if free is not None and made.budget_gib > free:
        raise ModelUnavailable(
            f"{profile.name} needs {made.budget_gib:.1f} GiB, of which {free:.1f} GiB are free\n  {shown}\n"
            "Stop what holds the memory (`nlsom models down`, `nvidia-smi`), or lower what the profile takes."
        )
