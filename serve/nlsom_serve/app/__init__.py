"""The HTTP application: an OpenAI-compatible endpoint, the native API for mindstorms, and a web page."""

from nlsom_serve.app.factory import create_app
from nlsom_serve.app.house import House, opened_house
from nlsom_serve.app.keys import Keys, read_keys
from nlsom_serve.app.settings import Settings

__all__ = ["House", "Keys", "Settings", "create_app", "opened_house", "read_keys"]
