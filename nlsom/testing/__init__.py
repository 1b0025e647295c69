"""Fakes and contract suites, for your own tests too."""
