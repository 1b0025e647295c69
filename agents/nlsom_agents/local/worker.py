"""The process that owns the engine: reads requests and writes outcomes as lines of JSON.

It is not a thread, because a step of the engine holds the GIL throughout (0.2 to 2 seconds with a prompt to
read), which would block the event loop. A process also isolates crashes of native code, and frees all memory
when it ends.

    in    {"id": 1, "text": …, "max_tokens": …, …}   or   {"cancel": 1}
    out   {"context": 8192} once the model is loaded, or {"error": "cannot load", "why": …}; then one outcome
          per request, see `batch`
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any, TextIO

import openvino_genai as genai

from nlsom_agents.local.batch import Batch, Request, reason
from nlsom_agents.local.files import locked
from nlsom_agents.local.gguf import context_length


def main() -> None:
    """Loads the model that the only argument describes (JSON), and serves until standard input ends."""
    options = json.loads(sys.argv[1])
    # Native code may print to standard output: redirect that to standard error.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    file, folder = Path(options["file"]), Path(options["folder"])
    try:
        context = min(context_length(file), options["context"] or sys.maxsize)
        convert(file, folder)
        batch = Batch(_open(folder, options), context)
    except Exception as error:  # noqa: BLE001 - native code may raise anything; the client reports it
        print(json.dumps({"error": "cannot load", "why": reason(error)}), file=out, flush=True)
        sys.exit(1)
    print(json.dumps({"context": context}), file=out, flush=True)
    _serve(batch, sys.stdin, out)


def convert(file: Path, folder: Path) -> None:
    """Converts a GGUF model to the engine's own format, unless `folder` exists; creates it atomically.

    For a 1.5B model this cuts the start from 12 to 3 seconds and the peak memory from 3.7 to 2.8 GB (0.9 GB
    until the engine repacks the weights at the first request).
    """
    if folder.is_dir():
        return
    with locked(folder.with_suffix(".lock")):
        if folder.is_dir():  # made by another process meanwhile
            return
        for left in folder.parent.glob(f"{folder.name}-*"):  # left by a process that was killed
            shutil.rmtree(left)
        draft = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=folder.parent))
        try:
            link = draft / "model.gguf"  # the engine writes its files beside the one it reads
            link.symlink_to(file.resolve())
            genai.LLMPipeline(link, "CPU", enable_save_ov_model=True)
            link.unlink()
            draft.rename(folder)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise


def _open(folder: Path, options: dict[str, Any]) -> Any:
    scheduling = genai.SchedulerConfig()
    scheduling.cache_size = options["cache_gb"]
    scheduling.max_num_seqs = options["max_num_seqs"]
    scheduling.enable_prefix_caching = True
    properties = {"INFERENCE_NUM_THREADS": options["threads"]} if options["threads"] else {}
    return genai.ContinuousBatchingPipeline(folder, scheduling, "CPU", properties)


def _serve(batch: Batch, source: TextIO, out: TextIO) -> None:
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()

    def read() -> None:
        for line in source:
            lines.put(line)
        lines.put("")

    threading.Thread(target=read, daemon=True).start()

    def write(outcome: dict[str, Any]) -> None:
        print(json.dumps(outcome), file=out, flush=True)

    while True:
        while not lines.empty() or not batch.busy:
            line = lines.get()
            if not line:
                os._exit(0)  # the client has ended or closed the input: nobody waits for outcomes
            message = json.loads(line)
            if "cancel" in message:
                batch.cancel(message["cancel"])
            elif refused := batch.add(Request(**message)):
                write(refused)
        for outcome in batch.step():
            write(outcome)


if __name__ == "__main__":
    main()
