"""Benchmarks: sets, official scores, runs, comparisons and reports."""
