"""Shared parts of the vision experts: the runtime, the models, and parsing of questions about pictures."""
