"""The arithmetic of memory plans, checked by hand, and against models whose size is known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nlsom.errors import UsageError
from nlsom_serve.vllm.plan import GIB, estimate, find_folder, plan, weights_bytes
from nlsom_serve.vllm.profiles import Facts, Profile
from nlsom_serve.vllm.shape import Shape, shape_of

SMOLLM2 = {
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "vocab_size": 49152,
    "tie_word_embeddings": True,
    "max_position_embeddings": 8192,
}
LLAMA_3_8B = {
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "tie_word_embeddings": False,
    "max_position_embeddings": 8192,
}
MIXTRAL_8X7B = {
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "num_local_experts": 8,
    "vocab_size": 32000,
    "tie_word_embeddings": False,
}


def profile(facts: Facts | None = None, **vllm: object) -> Profile:
    options = {"model": "org/model", "served-model-name": "model", "host": "127.0.0.1"}
    options |= {key.replace("_", "-"): value for key, value in vllm.items()}
    return Profile(name="it", about="", vllm=options, facts=facts or Facts())


@pytest.mark.parametrize(
    ("config", "parameters"),
    [(SMOLLM2, 134_515_008), (LLAMA_3_8B, 8_030_261_248), (MIXTRAL_8X7B, 46_702_792_704)],
    ids=["SmolLM2-135M", "Llama-3-8B", "Mixtral-8x7B"],
)
def test_the_parameters_of_published_models_are_counted_exactly(config: dict[str, object], parameters: int):
    assert shape_of(config).parameters == parameters


def test_keys_and_values_of_a_token_are_two_by_layers_by_heads_by_width():
    assert shape_of(LLAMA_3_8B).kv_numbers() == 2 * 32 * 8 * 128
    assert shape_of(SMOLLM2).kv_numbers() == 2 * 30 * 3 * 64


def test_a_vision_language_model_is_its_text_model_and_its_tower():
    vision = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "patch_size": 14}
    both = shape_of({"text_config": SMOLLM2, "vision_config": vision})
    alone = shape_of(SMOLLM2)
    assert both.parameters - alone.parameters == 2 * (4 * 64 * 64 + 2 * 64 * 128) + 3 * 14 * 14 * 64
    assert both.kv_numbers() == alone.kv_numbers()


def test_linear_attention_layers_keep_no_keys_and_values():
    kinds = ["linear_attention", "linear_attention", "full_attention"] * 10
    assert shape_of(SMOLLM2 | {"layer_types": kinds}).layers == 10


def test_compressed_attention_keeps_its_latent_only():
    shape = shape_of(SMOLLM2 | {"kv_lora_rank": 512, "qk_rope_head_dim": 64})
    assert shape.kv_numbers() == 30 * (512 + 64)


def test_a_config_that_leaves_out_what_is_needed_says_which_key():
    with pytest.raises(UsageError, match=r"here/config\.json does not say hidden_size.*nlsom\.shape"):
        shape_of({"text_config": {"model_type": "llama"}}, source="here/config.json")


def test_the_plan_of_an_eight_billion_model_on_24_gib_is_what_it_is_by_hand():
    made = estimate(
        profile(max_model_len=8192, gpu_memory_utilization=0.9), shape_of(LLAMA_3_8B), total_gib=24
    )
    weights = 8_030_261_248 * 2 / GIB
    assert made.weights_gib == pytest.approx(weights)
    assert made.token_bytes == 128 * 1024
    assert made.cache_gib == pytest.approx(0.9 * 24 - weights - made.overhead_gib)
    assert made.sequences == pytest.approx(made.cache_gib * GIB / (131072 * 8192))
    assert made.fits
    assert "2 × 32 layers × 8 heads × 128 × 2 bytes = 128.0 KiB" in "\n".join(made.lines)


def test_weights_that_leave_no_room_do_not_fit():
    made = estimate(profile(), shape_of(LLAMA_3_8B), total_gib=16)
    assert made.cache_gib < 1
    assert not made.fits


def test_two_gpus_halve_weights_and_cache():
    one = estimate(profile(), shape_of(LLAMA_3_8B), total_gib=80)
    two = estimate(profile(tensor_parallel_size=2), shape_of(LLAMA_3_8B), total_gib=80)
    assert two.weights_gib == pytest.approx(one.weights_gib / 2)
    assert two.token_bytes == one.token_bytes / 2
    assert "/ 2 GPUs" in two.lines[0]


def test_an_eight_bit_cache_holds_twice_as_much():
    shape = shape_of(LLAMA_3_8B)
    full = estimate(profile(), shape, total_gib=80)
    half = estimate(profile(kv_cache_dtype="fp8"), shape, total_gib=80)
    assert half.sequences == pytest.approx(2 * full.sequences)


def test_on_cpu_the_cache_is_what_the_environment_gives_it():
    facts = Facts(device="cpu", env={"VLLM_CPU_KVCACHE_SPACE": "3"})
    assert estimate(profile(facts), shape_of(SMOLLM2), total_gib=64).cache_gib == pytest.approx(3)


def test_a_machine_with_less_memory_than_weights_and_cache_does_not_fit():
    facts = Facts(device="cpu", env={"VLLM_CPU_KVCACHE_SPACE": "3"})
    assert not estimate(profile(facts), shape_of(SMOLLM2), total_gib=2).fits


@given(
    layers=st.integers(1, 128),
    heads=st.sampled_from([1, 2, 4, 8, 16]),
    width=st.sampled_from([32, 64, 128]),
    billions=st.floats(0.1, 700),
    total=st.floats(1, 1000),
)
def test_more_memory_never_fits_less(layers: int, heads: int, width: int, billions: float, total: float):
    shape = Shape(parameters=billions * 1e9, layers=layers, kv_heads=heads, head_dim=width)
    less, more = (estimate(profile(), shape, total_gib=gib) for gib in (total, total * 1.5))
    assert more.sequences >= less.sequences
    assert more.fits or not less.fits


def test_the_files_of_a_local_model_are_weighed(tmp_path: Path):
    (tmp_path / "config.json").write_text(json.dumps(SMOLLM2))
    (tmp_path / "model.safetensors").write_bytes(bytes(5000))
    made = plan(profile(model=str(tmp_path)), total_gib=24)
    assert made.weights_gib == pytest.approx(5000 / GIB)


def test_a_sharded_model_is_weighed_by_its_index(tmp_path: Path):
    (tmp_path / "model.safetensors.index.json").write_text('{"metadata": {"total_size": 123456}}')
    assert weights_bytes(tmp_path) == 123456


def test_a_model_in_the_hubs_cache_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    assert find_folder("org/model") is None
    snapshot = tmp_path / "models--org--model" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text(json.dumps(SMOLLM2))
    assert find_folder("org/model") == snapshot


def test_a_model_of_unknown_size_says_what_to_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(UsageError, match=r"org/model is not on this machine.*nlsom\.shape"):
        plan(profile(), total_gib=24)
