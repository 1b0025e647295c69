"""Fakes and contract suites for authors of agents, buses, traces and models."""
