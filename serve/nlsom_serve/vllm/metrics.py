"""Reads the metrics of a vLLM server (Prometheus text format); two readings give rates."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

_SAMPLE = re.compile(r"^vllm:(\w+)(?:\{.*\})? ([-+.\deE]+)(?: \d+)?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Metrics:
    """Counters of a server, summed over its engines.

    Attributes:
        running: Requests being computed.
        waiting: Requests in the queue.
        prompt_tokens: Prompt tokens since the start.
        generated_tokens: Generated tokens since the start.
        cache_queries: Prompt tokens looked up in the prefix cache since the start.
        cache_hits: Those of them that were found.
    """

    running: int
    waiting: int
    prompt_tokens: int
    generated_tokens: int
    cache_queries: int
    cache_hits: int

    @classmethod
    def read(cls, text: str) -> Self:
        """Parses Prometheus text; missing counters are 0. Older servers leave out `_total`."""
        sums: dict[str, float] = {}
        for name, value in _SAMPLE.findall(text):
            sums[name] = sums.get(name, 0.0) + float(value)

        def count(name: str) -> int:
            return round(sums.get(f"{name}_total", sums.get(name, 0.0)))

        return cls(
            running=count("num_requests_running"),
            waiting=count("num_requests_waiting"),
            prompt_tokens=count("prompt_tokens"),
            generated_tokens=count("generation_tokens"),
            cache_queries=count("prefix_cache_queries"),
            cache_hits=count("prefix_cache_hits"),
        )

    def since(self, earlier: Metrics) -> Metrics:
        """The counts since `earlier`; `running` and `waiting` are the current ones."""
        return Metrics(
            running=self.running,
            waiting=self.waiting,
            prompt_tokens=self.prompt_tokens - earlier.prompt_tokens,
            generated_tokens=self.generated_tokens - earlier.generated_tokens,
            cache_queries=self.cache_queries - earlier.cache_queries,
            cache_hits=self.cache_hits - earlier.cache_hits,
        )

    @property
    def hit_rate(self) -> float | None:
        """Share of prompt tokens found in the prefix cache (0 to 1); None before the first prompt."""
        return self.cache_hits / self.cache_queries if self.cache_queries else None
