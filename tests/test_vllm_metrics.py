"""A server's own figures."""

from __future__ import annotations

import pytest

from nlsom_serve.vllm.metrics import Metrics

TEXT = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="tiny"} 3.0
vllm:num_requests_running{engine="1",model_name="tiny"} 2.0
vllm:num_requests_waiting{engine="0",model_name="tiny"} 1.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="tiny",reason="capacity"} 9.0
vllm:prefix_cache_queries_total{engine="0",model_name="tiny"} 2000.0
vllm:prefix_cache_queries_created{engine="0",model_name="tiny"} 1.7960237907913895e+09
vllm:prefix_cache_hits_total{engine="0",model_name="tiny"} 1500.0
vllm:external_prefix_cache_hits_total{engine="0",model_name="tiny"} 77.0
vllm:prompt_tokens_total{engine="0",model_name="tiny"} 1.234567e+06
vllm:generation_tokens_total{engine="0",model_name="a name, with } and \\"quotes\\""} 40.0
vllm:iteration_tokens_total_bucket{engine="0",le="1.0",model_name="tiny"} 7.0
process_open_fds 31.0
"""


def test_counts_are_read_by_their_exact_name_and_summed_over_engines():
    assert Metrics.read(TEXT) == Metrics(
        running=5, waiting=1, prompt_tokens=1234567, generated_tokens=40, cache_queries=2000, cache_hits=1500
    )


def test_the_hit_rate_is_a_share_and_unknown_before_the_first_prompt():
    assert Metrics.read(TEXT).hit_rate == pytest.approx(0.75)
    assert Metrics.read("").hit_rate is None


def test_what_was_done_between_two_readings_is_their_difference():
    earlier = Metrics.read(TEXT)
    later = Metrics.read(TEXT.replace("} 40.0", "} 100.0").replace("} 1500.0", "} 1600.0"))
    done = later.since(earlier)
    assert (done.generated_tokens, done.cache_hits, done.prompt_tokens, done.running) == (60, 100, 0, 5)
