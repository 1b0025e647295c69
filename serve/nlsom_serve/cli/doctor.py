"""`nlsom doctor`."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Literal, get_args

import nlsom
from nlsom import plugins
from nlsom.errors import ExtraMissing
from nlsom.home import home
from nlsom_agents.local import catalog
from nlsom_serve import vllm
from nlsom_serve.cli.options import AsJson
from nlsom_serve.cli.screen import escape, out, print_json, table

_EXTRAS = {
    "local": ("openvino", "openvino_genai", "rapidocr", "tokenizers"),
    "serve": ("fastapi", "prometheus_client", "uvicorn"),
    "mcp": ("mcp",),
    "heif": ("pillow_heif",),
    "nats": ("nats",),
    "bench": ("easy_vqa", "huggingface_hub", "pyarrow"),
    "vllm": ("vllm",),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report: what was checked, its state, and what to do about it."""

    what: str
    state: Literal["good", "note", "bad"]
    told: str
    do: str = ""


def doctor(json: AsJson = False) -> None:
    """Reports what is installed, cached and reachable, and what to do about what is missing.

    Example: `nlsom doctor`
    """
    findings = list(examine())
    if json:
        print_json([asdict(finding) for finding in findings])
        return
    marks = {"good": "[green]✓[/]", "note": "[yellow]·[/]", "bad": "[red]✗[/]"}
    lines = table()
    for finding in findings:
        do = f"\n[dim]{escape(finding.do)}[/]" if finding.do else ""
        lines.add_row(marks[finding.state], f"[bold]{finding.what}[/]", escape(finding.told) + do)
    out.print(lines)


def examine() -> Iterator[Finding]:
    """Checks everything, in the order of the report."""
    yield Finding("nlsom", "good", nlsom.__version__)
    version = platform.python_version()
    yield Finding("Python", "good" if sys.version_info >= (3, 11) else "bad", f"{version} ({sys.prefix})")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield Finding("machine", "good", f"{platform.system()} {platform.machine()}, {cores} cores")
    for extra, modules in _EXTRAS.items():
        absent = [module for module in modules if importlib.util.find_spec(module) is None]
        if not absent:
            yield Finding(f"extra {extra}", "good", "installed")
        elif extra == "vllm":
            do = "vLLM needs a virtual environment of its own: see serve/README.md"
            yield Finding(f"extra {extra}", "note", "not in this environment", do)
        else:
            message = "not installed" if len(absent) == len(modules) else f"without {', '.join(absent)}"
            yield Finding(f"extra {extra}", "note", message, f"pip install 'nlsom[{extra}]'")
    yield from _plugins()
    yield from _cache()
    yield from _servers()
    yield _gpu()


def _plugins() -> Iterator[Finding]:
    number = 0
    for group in get_args(plugins.Group):
        sound, faults = plugins.sound(group)
        number += len(sound)
        for fault in faults:
            if not isinstance(fault, ExtraMissing):  # reported as a missing extra
                yield Finding("plugin", "bad", str(fault), "repair or remove the package it comes from")
    yield Finding("plugins", "good", f"{number} can be imported: `nlsom agents list` shows the agents")


def _cache() -> Iterator[Finding]:
    folder = home()
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) if folder.is_dir() else 0
    existing = folder if folder.is_dir() else folder.parent
    free = shutil.disk_usage(existing).free if existing.is_dir() else 0
    message = f"{folder}: {size / 2**30:.1f} GiB, {free / 2**30:.0f} GiB free"
    state = "good" if free > 4 * 2**30 or not free else "bad"
    yield Finding(
        "cache", state, message, "" if state == "good" else "make room, or set NLSOM_HOME elsewhere"
    )
    for model in catalog.models():
        if model.here:
            yield Finding("model", "good", f"{model.name} ({model.size / 2**20:.0f} MiB)")
        else:
            yield Finding(
                "model", "note", f"{model.name} is not here: {model.about}", f"nlsom models pull {model.name}"
            )


def _servers() -> Iterator[Finding]:
    found = asyncio.run(vllm.status(interval=0.0))
    for one in found:
        state = "good" if one.state == "serving" else "bad"
        yield Finding("server", state, f"{one.server.name}: {one.state}, {one.server.url}/v1")
    if not found:
        yield Finding("servers", "note", "none is running", "nlsom models up PROFILE starts one under vLLM")


def _gpu() -> Finding:
    tool = shutil.which("nvidia-smi")
    do = "embedded models run on the CPU; a vision-language model under vLLM needs a GPU"
    if tool is None:
        return Finding("GPU", "note", "none found", do)
    query = [tool, "--query-gpu=name,memory.total", "--format=csv,noheader"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=20, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding("GPU", "note", f"nvidia-smi does not answer: {error}", do)
    if answer.returncode != 0:
        return Finding(
            "GPU", "note", f"nvidia-smi says: {(answer.stderr or answer.stdout).strip()[:200]}", do
        )
    return Finding("GPU", "good", answer.stdout.strip().replace("\n", "; "))
