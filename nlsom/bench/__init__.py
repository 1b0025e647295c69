"""Benchmarks of societies: sets, scores, runs and comparisons."""
