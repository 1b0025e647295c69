"""What lines of vLLM's log mean. The lines are vLLM 0.32's own, shortened."""

# ruff: noqa: E501 (lines of a log are as long as they are)

from __future__ import annotations

import re

import pytest

from nlsom_serve.vllm.log import reason, stage


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("(APIServer pid=1) INFO [model.py:733] Resolved architecture: LlavaForConditionalGeneration", "model found: LlavaForConditionalGeneration"),
        ("(Worker pid=1) INFO [cpu_model_runner.py:68] Starting to load model /models/llava-tiny...", "loading weights"),
        ("Loading safetensors checkpoint shards:  50% Completed | 1/2 [00:00<?, ?it/s]", "loading weights: 50%"),
        ("(Worker pid=1) INFO [default_loader.py:501] Loading weights took 0.01 seconds", "weights loaded: 0.01 s"),
        ("(EngineCore pid=1) INFO [kv_cache_utils.py:2327] CPU KV cache size: 4,194,304 tokens, Maximum concurrency", "KV cache: 4,194,304 tokens"),
        ("Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):  43%|####      | 29/67", "capturing graphs: 43%"),
        ("(EngineCore pid=1) INFO [core.py:402] init engine (profile, create kv cache, warmup model) took 3.18 s", "engine ready: 3.18 s"),
        ("(APIServer pid=1) INFO [entry.py:140] Starting vLLM server on http://127.0.0.1:8000", "serving"),
        ("(APIServer pid=1) WARNING Enforce eager set, disabling torch.compile, CUDAGraphs", None),
        ("(APIServer pid=1) INFO Route: /health, Methods: GET", None),
    ],
)  # fmt: skip
def test_a_line_tells_how_far_the_start_has_come(line: str, expected: str | None):
    assert stage(line) == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["usage: vllm [-h]", "vllm: error: unrecognized arguments: --max-modl-len 2048"], r"vLLM does not know --max-modl-len 2048: correct"),
        (["(APIServer pid=1) ValidationError: 1 validation error for VllmConfig", "  Value error, User-specified max_model_len (9000) is greater than the derived max_model_len (max_position_embeddings=4096) [type=value_error]"], r"max_model_len \(9000\) is greater .*lower max-model-len"),
        (["(EngineCore pid=2) torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above."], r"CUDA out of memory.*smaller or quantized"),
        (["(EngineCore pid=2) ValueError: Free memory on device cuda:0 (5.1/23.6 GiB) on startup is less than desired GPU memory utilization (0.9, 21.2 GiB). Decrease GPU memory utilization."], r"another process holds GPU memory"),
        (["(EngineCore pid=2) ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`"], r"raise gpu-memory-utilization"),
        (["huggingface_hub.errors.LocalEntryNotFoundError: Cannot find an appropriate cached snapshot folder"], r"the hub cannot be reached: name a local folder"),
        (["OSError: [Errno 98] Address already in use"], r"another process took the port"),
        (["(EngineCore pid=2) KeyError: 'model.layers.0.weird'", "(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"], r"^KeyError: 'model\.layers\.0\.weird'$"),
        (["Killed"], r"its log ends with: Killed"),
        ([], r"its log is empty"),
    ],
)  # fmt: skip
def test_the_reason_of_a_failure_is_its_cause_and_what_to_do(lines: list[str], expected: str):
    assert re.search(expected, reason(lines))


def test_an_error_after_the_cause_does_not_hide_it():
    cause = "(EngineCore pid=2) ValueError: head_dim 7 is odd"
    after = "(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above."
    assert reason([cause, after, "(APIServer pid=1) bye"]) == "ValueError: head_dim 7 is odd"
