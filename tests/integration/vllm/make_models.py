"""Makes the two model folders that the vLLM tests serve; runs inside the environment of `make_env.py`.

    python make_models.py language SMOLLM2.gguf FOLDER     SmolLM2-135M, real weights, bfloat16
    python make_models.py llava SMOLLM2_FOLDER FOLDER      a LLaVA of random weights that takes pictures

The LLaVA has the real architecture (a CLIP tower, a projector, a Llama) at toy size, and SmolLM2's tokenizer:
it shows that pictures travel and are counted, not that anything is seen in them.
"""

# pyright: basic
import argparse
import json
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    CLIPVisionConfig,
    LlamaConfig,
    LlavaConfig,
    LlavaForConditionalGeneration,
)

SIDE, PATCH = 112, 14
"""A picture becomes (112 / 14)² = 64 tokens."""

CHAT = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}"
    "{% else %}{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<image>\n{% else %}{{ part['text'] }}{% endif %}"
    "{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def language(gguf: Path, folder: Path) -> None:
    """Unpacks a quantized GGUF file to a folder of plain safetensors."""
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    model = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.bfloat16)
    # The weights are plain now; while these marks say otherwise, transformers refuses to save them so.
    model.hf_quantizer, model.is_quantized = None, False
    for marked in (model, model.config):
        for mark in ("quantization_method", "quantization_config"):
            if hasattr(marked, mark):
                delattr(marked, mark)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def llava(tokenizer_folder: Path, folder: Path) -> None:
    """Makes a LLaVA of random weights, always the same ones."""
    tokenizer = AutoTokenizer.from_pretrained(tokenizer_folder)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<image>"]})
    tokenizer.chat_template = CHAT
    image_token = tokenizer.convert_tokens_to_ids("<image>")

    torch.manual_seed(0)
    text = LlamaConfig(
        vocab_size=-(-len(tokenizer) // 64) * 64,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=32,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    vision = CLIPVisionConfig(
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        image_size=SIDE,
        patch_size=PATCH,
        projection_dim=64,
    )
    config = LlavaConfig(
        vision_config=vision,
        text_config=text,
        image_token_index=image_token,
        vision_feature_layer=-2,
        vision_feature_select_strategy="default",
        tie_word_embeddings=True,
    )
    model = LlavaForConditionalGeneration(config).to(torch.bfloat16)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    _write_processor(folder)
    _rename_tower(folder / "model.safetensors")


def _write_processor(folder: Path) -> None:
    pictures = {
        "image_processor_type": "CLIPImageProcessor",
        "processor_class": "LlavaProcessor",
        "crop_size": {"height": SIDE, "width": SIDE},
        "size": {"shortest_edge": SIDE},
        "do_center_crop": True,
        "do_convert_rgb": True,
        "do_normalize": True,
        "do_rescale": True,
        "do_resize": True,
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.25, 0.25, 0.25],
        "resample": 3,
        "rescale_factor": 1 / 255,
    }
    processor = {
        "processor_class": "LlavaProcessor",
        "image_token": "<image>",
        "patch_size": PATCH,
        "vision_feature_select_strategy": "default",
        "num_additional_image_tokens": 1,
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(pictures, indent=2))
    (folder / "processor_config.json").write_text(json.dumps(processor, indent=2))


def _rename_tower(weights: Path) -> None:
    """vLLM's loader knows the vision tower by the name it had before transformers flattened it."""
    old, new = "vision_tower.", "vision_tower.vision_model."
    tensors = {
        name.replace(old, new, 1) if name.startswith(old) and not name.startswith(new) else name: tensor
        for name, tensor in load_file(weights).items()
    }
    save_file(tensors, weights, metadata={"format": "pt"})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["language", "llava"])
    parser.add_argument("source", type=Path)
    parser.add_argument("folder", type=Path)
    asked = parser.parse_args()
    {"language": language, "llava": llava}[asked.what](asked.source, asked.folder)
