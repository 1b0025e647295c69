"""Benchmarks: data sets, official scores, runs, comparisons and reports."""
