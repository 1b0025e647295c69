"""Profiles: the shipped ones hold what they promise, and every fault of a file is told with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from nlsom.errors import ConfigError, UsageError
from nlsom.model.prompt import plain
from nlsom_serve.vllm.plan import plan
from nlsom_serve.vllm.profiles import load, shipped


def write(folder: Path, text: str) -> str:
    path = folder / "mine.yaml"
    path.write_text(text)
    return str(path)


def faults(folder: Path, text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(write(folder, text))
    return [str(fault).removeprefix(f"{folder}/") for fault in caught.value.faults]


@pytest.mark.parametrize("name", shipped())
def test_a_shipped_profile_says_what_it_is_for_and_sets_what_nlsom_counts_on(name: str):
    for profile in load(name):
        assert profile.about
        constrains = profile.vllm["structured-outputs-config"]
        assert constrains == {"backend": "guidance", "disable_any_whitespace": True}, "JSON without padding"
        assert profile.vllm["enable-prompt-tokens-details"] is True
        assert ("image" in profile.facts.modalities) == (profile.facts.images_per_prompt > 0)


@pytest.mark.parametrize("name", [name for name in shipped() if name != "cpu-test"])
def test_a_shipped_profile_fits_the_gpu_that_it_names(name: str):
    for profile in load(name):
        assert plan(profile).fits


# What each family of models puts a picture, a video or a turn's end in the place of, from its tokenizer.
QWEN = ("<|im_start|>", "<|im_end|>", "<|endoftext|>", "<think>", "</think>", "<tool_call>")
QWEN_VL = (*QWEN, "<|image_pad|>", "<|video_pad|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>")
SPECIAL = {"Qwen3-VL": QWEN_VL, "Qwen3": QWEN, "llava-tiny": ("<image>", "<|im_start|>", "<|im_end|>")}


@pytest.mark.parametrize("name", shipped())
def test_no_special_token_of_a_shipped_profiles_model_survives_in_text(name: str):
    for profile in load(name):
        family = next(known for known in SPECIAL if Path(profile.model).name.startswith(known))
        for token in SPECIAL[family]:
            assert token not in plain(f"I see {token} and{token}.")


def test_the_models_of_the_shipped_set_share_one_gpu():
    eyes, words = load("pair")
    assert (eyes.name, words.name) == ("pair.eyes", "pair.words")
    assert eyes.number("gpu-memory-utilization", 1) + words.number("gpu-memory-utilization", 1) < 1
    assert eyes.facts.gpu_memory_gib == words.facts.gpu_memory_gib


def test_a_profile_that_is_not_shipped_gets_the_nearest_name():
    with pytest.raises(UsageError, match=r"no profile 'smal-vlm'; did you mean 'small-vlm'\?"):
        load("smal-vlm")


def test_a_missing_file_is_told():
    with pytest.raises(UsageError, match=r"no profile \./nowhere\.yaml: no such file"):
        load("./nowhere.yaml")


def test_a_name_before_the_profile_is_the_servers_name():
    assert [load(f"{name}=small-vlm")[0].name for name in ("a", "b")] == ["a", "b"]
    assert [profile.name for profile in load("two=pair")] == ["two.eyes", "two.words"]


def test_a_folder_is_found_beside_the_file_and_a_hub_id_is_left_alone(tmp_path: Path):
    (profile,) = load(write(tmp_path, "vllm: {model: ./weights}"))
    assert profile.model == str(tmp_path / "weights")
    assert profile.served == "weights"
    (profile,) = load(write(tmp_path, "vllm: {model: org/name}"))
    assert (profile.model, profile.served) == ("org/name", "org/name")


def test_a_folder_may_be_in_the_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NLSOM_HOME", str(tmp_path / "cache"))
    (profile,) = load(write(tmp_path, "vllm: {model: '${NLSOM_HOME}/m'}"))
    assert profile.model == str(tmp_path / "cache" / "m")


def test_pictures_per_prompt_become_vllms_limit(tmp_path: Path):
    (profile,) = load(
        write(tmp_path, "vllm: {model: a/b}\nnlsom: {modalities: [text, image], images_per_prompt: 3}")
    )
    assert profile.vllm["limit-mm-per-prompt"] == {"image": 3, "video": 0}


def test_options_may_be_written_with_underscores(tmp_path: Path):
    (profile,) = load(write(tmp_path, "vllm: {model: a/b, max_model_len: 2048}"))
    assert profile.number("max-model-len", 0) == 2048


@pytest.mark.parametrize(
    ("written", "number"),
    [("16k", 16000), ("16K", 16384), ("1.5k", 1500), ("0.9", 0.9), ("auto", 7), ("-1", 7)],
)
def test_numbers_are_read_as_vllm_reads_them(tmp_path: Path, written: str, number: float):
    (profile,) = load(write(tmp_path, f"vllm: {{model: a/b, max-model-len: {written}}}"))
    assert profile.number("max-model-len", 7) == number


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "vllm: {model: a/b}\nnlsom:\n  modalites: [text]\n",
            "mine.yaml:3:3: nlsom.modalites: unknown key; did you mean 'modalities'?",
        ),
        ("vlm: {model: a/b}\n", "mine.yaml:1:1: vlm: unknown key; did you mean 'vllm'?"),
        (
            "vllm: {port: 8000}\n",
            "mine.yaml:1:1: vllm.model is missing: a hub id (org/name) or a folder (./…, ~/…, /…)",
        ),
        ("vllm: {model: a/b}\nvllm: {model: c/d}\n", "mine.yaml:2:1: vllm is there twice"),
        ("- a\n", "mine.yaml:1:1: a profile is a mapping with the keys about, vllm, nlsom"),
        (
            "vllm: {model: a/b, config: other.yaml}\n",
            "mine.yaml:1:20: vllm.config cannot be set: the profile is the config",
        ),
        (
            "vllm: {model: a/b}\nnlsom: {images_per_prompt: 2}\n",
            "mine.yaml:2:9: nlsom.images_per_prompt must be above 0 if and only if modalities has image",
        ),
        (
            "vllm:\n  model: a/b\n  limit-mm-per-prompt: {image: 2}\n"
            "nlsom: {modalities: [text, image], images_per_prompt: 3}\n",
            "mine.yaml:3:3: vllm.limit-mm-per-prompt is {'image': 2}, but nlsom.images_per_prompt is 3",
        ),
    ],
)
def test_a_fault_is_told_with_file_line_column_and_key(tmp_path: Path, text: str, expected: str):
    assert expected in faults(tmp_path, text)


def test_all_faults_are_told_at_once(tmp_path: Path):
    text = "vllm: {model: a/b}\nnlsom: {device: tpu, images_per_prompt: -1, tratis: {}}\n"
    assert len(faults(tmp_path, text)) == 3


def test_broken_yaml_is_told_with_its_place(tmp_path: Path):
    (fault,) = faults(tmp_path, "vllm: {model: a/b\n")
    assert fault.startswith("mine.yaml:2:1: not YAML: ")


def test_a_set_that_wants_more_than_a_gpu_is_refused(tmp_path: Path):
    each = "{vllm: {model: a/b, gpu-memory-utilization: 0.6}}"
    (fault,) = faults(tmp_path, f"servers:\n  one: {each}\n  two: {each}\n")
    assert "the servers on GPU 0 together need 1.20 of its memory" in fault


def test_a_set_on_two_gpus_may_take_all_of_both(tmp_path: Path):
    each = "{{vllm: {{model: a/b}}, nlsom: {{env: {{CUDA_VISIBLE_DEVICES: '{}'}}}}}}"
    assert len(load(write(tmp_path, f"servers:\n  one: {each.format(0)}\n  two: {each.format(1)}\n"))) == 2
