"""Fakes, simulations and contract suites for testing agents and societies."""
