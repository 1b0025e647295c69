"""Starts, monitors and stops vLLM servers on this machine.

Plain async functions; the command line's `nlsom models` is a thin layer over them.

    async with serving(["small-vlm"]) as servers:     # they stop with the block, or with this process
        ...
    servers = await up(["small-vlm"])                  # they run until `await down(["small-vlm"])`
"""

from nlsom_serve.vllm.launch import NO_VLLM, Launch
from nlsom_serve.vllm.metrics import Metrics
from nlsom_serve.vllm.plan import Plan
from nlsom_serve.vllm.profiles import Profile, load, shipped
from nlsom_serve.vllm.servers import down, find, plans, prepared, serving, up
from nlsom_serve.vllm.state import Server
from nlsom_serve.vllm.watch import Progress, Status, first_end, logs, status

__all__ = [
    "NO_VLLM",
    "Launch",
    "Metrics",
    "Plan",
    "Profile",
    "Progress",
    "Server",
    "Status",
    "down",
    "find",
    "first_end",
    "load",
    "logs",
    "plans",
    "prepared",
    "serving",
    "shipped",
    "status",
    "up",
]
