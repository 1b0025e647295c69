"""Serving: the command line, the HTTP endpoint, the page, and the life of model servers."""
