"""Models: the contract, the layout of prompts, and the HTTP client."""

from nlsom.model.contract import Completion, Model, Prompt, Settings

__all__ = ["Completion", "Model", "Prompt", "Settings"]
