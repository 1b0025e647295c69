"""Fakes and contract suites, for whoever writes an agent, a bus, a trace or a model."""
