"""Serving: the command line, the HTTP endpoint and its page, and starting and stopping vLLM servers."""
