"""The dimensions of a transformer, from which its memory is estimated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pydantic import NonNegativeInt, PositiveFloat, PositiveInt

from nlsom.errors import UsageError
from nlsom.message import Frozen


class Shape(Frozen):
    """The dimensions of a model.

    Attributes:
        parameters: Number of parameters, including the vision tower and all experts.
        layers: Number of layers with a KV cache.
        kv_heads: KV heads per layer.
        head_dim: Size of a head.
        context: Longest context in tokens.
        latent: Cached numbers per token and layer if the KV cache is compressed (MLA); 0 otherwise.
    """

    parameters: PositiveFloat
    layers: PositiveInt
    kv_heads: PositiveInt
    head_dim: PositiveInt
    context: PositiveInt = 32768
    latent: NonNegativeInt = 0

    def kv_numbers(self, kv_heads: int | None = None) -> int:
        """Cached numbers per token: 2 (keys and values) × layers × heads × head_dim; MLA: layers × latent."""
        if self.latent:
            return self.layers * self.latent
        return 2 * self.layers * (self.kv_heads if kv_heads is None else kv_heads) * self.head_dim


def shape_of(config: Mapping[str, Any], *, source: str = "config.json") -> Shape:
    """The dimensions of a transformer from its config.json; parameters are counted layer by layer.

    Args:
        config: The file's content; a vision-language model has its text model under `text_config` or
            `llm_config`, its tower under `vision_config`.
        source: The file's name in errors.

    Raises:
        UsageError: A value is missing, as in files that leave out defaults of the model's class.
    """
    text = cast("Mapping[str, Any]", config.get("text_config") or config.get("llm_config") or config)

    def need(key: str) -> int:
        if key not in text:
            raise UsageError(f"{source} does not say {key}: write `nlsom.shape` in the profile")
        return int(text[key])

    hidden, layers, heads = need("hidden_size"), need("num_hidden_layers"), need("num_attention_heads")
    kv_heads = int(text.get("num_key_value_heads") or heads)
    head_dim = int(text.get("head_dim") or hidden // heads)
    tied = bool(text.get("tie_word_embeddings", config.get("tie_word_embeddings", False)))
    rank = int(text.get("kv_lora_rank") or 0)
    rotary = int(text.get("qk_rope_head_dim") or 0)

    attention = 2 * hidden * head_dim * (heads + kv_heads)
    experts = int(
        text.get("num_experts") or text.get("num_local_experts") or text.get("n_routed_experts") or 0
    )
    mlp = 3 * hidden * need("intermediate_size")
    if experts:
        each = 3 * hidden * int(text.get("moe_intermediate_size") or need("intermediate_size"))
        sparse = (experts + int(text.get("n_shared_experts") or 0)) * each + experts * hidden
        dense = int(text.get("first_k_dense_replace") or 0)
        mlps = dense * mlp + (layers - dense) * sparse
    else:
        mlps = layers * mlp
    norms = 2 * hidden * layers + hidden
    words = need("vocab_size") * hidden * (1 if tied else 2)

    kinds = cast("list[str]", text.get("layer_types") or [])
    keeping = sum(1 for kind in kinds if "linear" not in kind and "mamba" not in kind) if kinds else layers
    return Shape(
        parameters=words + layers * attention + mlps + norms + _tower(config.get("vision_config")),
        layers=max(1, keeping),
        kv_heads=kv_heads,
        head_dim=head_dim,
        context=int(text.get("max_position_embeddings") or 32768),
        latent=rank + rotary if rank else 0,
    )


def _tower(vision: Mapping[str, Any] | None) -> int:
    """Parameters of a vision transformer: attention (4 h²) and two-layer MLPs, and the patch embedding."""
    if not vision or "hidden_size" not in vision:
        return 0
    hidden = int(vision["hidden_size"])
    layers = int(vision.get("num_hidden_layers") or vision.get("depth") or 0)
    inner = int(vision.get("intermediate_size") or 4 * hidden)
    patch = int(vision.get("patch_size") or 14)
    return layers * (4 * hidden * hidden + 2 * hidden * inner) + 3 * patch * patch * hidden
