"""Interprets a vLLM server's log: the progress of its start, and why it failed."""

from __future__ import annotations

import re
from collections.abc import Sequence

_STAGES = (
    (re.compile(r"Starting vLLM server on|Application startup complete"), "serving"),
    (re.compile(r"Graph capturing finished|init engine .* took ([\d.]+ s)"), "engine ready"),
    (re.compile(r"Capturing (?:CUDA )?graphs?\b.*?(\d+%)"), "capturing graphs"),
    (re.compile(r"KV cache size: ([\d,]+ tokens)"), "KV cache"),
    (re.compile(r"Compiling a graph|Dynamo bytecode transform"), "compiling"),
    (re.compile(r"(?:Loading|Model loading) .*?took ([\d.]+ (?:s|GiB))"), "weights loaded"),
    (re.compile(r"checkpoint shards: +(\d+%)"), "loading weights"),
    (re.compile(r"Starting to load model"), "loading weights"),
    (re.compile(r"Downloading|Fetching \d+ files"), "downloading"),
    (re.compile(r"Resolved architecture: (\w+)"), "model found"),
)

_ADVICE = (
    (
        r"unrecognized arguments: (.*)",
        "vLLM does not know {0}: correct the profile's `vllm` section (options: `vllm serve --help=all`)",
    ),
    (r"error: (argument .*)", "vLLM refuses {0}: correct the profile's `vllm` section"),
    (
        r"(Free memory on device .*? is less than desired GPU memory utilization.*?\))",
        "{0}: another process holds GPU memory (`nvidia-smi` says which; `nlsom models down` stops servers), "
        "or lower gpu-memory-utilization",
    ),
    (
        r"((?:torch\.)?(?:cuda\.)?OutOfMemoryError.*|CUDA out of memory.*)",
        "{0}: the model does not fit; lower max-model-len or max-num-seqs, take a smaller or quantized "
        "model, or more GPUs (tensor-parallel-size)",
    ),
    (
        r"(No available memory for the cache blocks)",
        "{0}: the weights leave no room; raise gpu-memory-utilization, or take a smaller or quantized model",
    ),
    (
        r"(To serve at least one request with .*? larger than the available KV cache memory.*)",
        "{0}",
    ),
    (
        r"(User-specified max_model_len \(\d+\) is greater than the derived max_model_len.*?\))",
        "{0}: lower max-model-len",
    ),
    (r"(No CUDA GPUs are available|Failed to infer device type)", "{0}: this vLLM finds no GPU it can use"),
    (r"(Address already in use)", "{0}: another process took the port; set another one in the profile"),
    (
        r"(Model architectures? .*? (?:are|is) not supported.*?)(?:\.|$)",
        "{0}: this vLLM cannot serve the model; a newer one may",
    ),
    (
        r"(trust_remote_code=True)",
        "the model brings code of its own: set trust-remote-code in the profile if you trust it",
    ),
    (
        r"(GatedRepoError|gated repo)",
        "the model is gated: accept its licence at the hub, and set HF_TOKEN",
    ),
    (
        r"(RepositoryNotFoundError|is not a valid model identifier)",
        "the hub has no such model: correct `model` in the profile (a private one needs HF_TOKEN)",
    ),
    (
        r"(LocalEntryNotFoundError|traffic has been disabled|couldn't connect to|OfflineModeIsEnabled)",
        "the model is not on this machine, and the hub cannot be reached: name a local folder in `model`, or "
        "go online (HF_HUB_OFFLINE unset)",
    ),
    (r"(?:Value|Assertion) error, (.*?) \[type=", "{0}: correct the profile's `vllm` section"),
    (
        r"(?:OSError|ValueError): (.*(?:No such file|does not appear to have a file named|not found in).*)",
        "{0}",
    ),
)
_RULES = tuple((re.compile(pattern), advice) for pattern, advice in _ADVICE)
_ERROR = re.compile(r"(?:^|\s)((?:\w+\.)*\w*(?:Error|Exception)): (.+)$")
_SYMPTOM = re.compile(
    r"Engine core initialization failed|See root cause above|WorkerProc initialization failed"
)
_PREFIX = re.compile(r"^\((?:APIServer|EngineCore|Worker)[^)]*\)\s*")


def stage(line: str) -> str | None:
    """The stage of the start that a line reports, as `stage` or `stage: figure`; None for other lines."""
    for pattern, name in _STAGES:
        if found := pattern.search(line):
            figure = found.group(1) if pattern.groups else None
            return f"{name}: {figure}" if figure else name
    return None


def reason(lines: Sequence[str]) -> str:
    """Why a server ended, from its log: a known cause with advice, else its last error.

    vLLM logs the root cause first and then its consequences, in every process: the last error is often only
    "engine core initialization failed".
    """
    plain = [_PREFIX.sub("", line.rstrip()) for line in lines]
    for pattern, advice in _RULES:
        for line in reversed(plain):
            if found := pattern.search(line):
                return advice.format(*found.groups())
    errors = [line for line in plain if _ERROR.search(line) and not _SYMPTOM.search(line)]
    if errors:
        found = _ERROR.search(errors[-1])
        assert found is not None
        return f"{found.group(1).rpartition('.')[2]}: {found.group(2)}"
    said = [line for line in plain if line.strip()]
    return f"its log ends with: {said[-1].strip()}" if said else "its log is empty"
