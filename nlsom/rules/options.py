"""The base of rules, whose options can be read from a society's file."""

from __future__ import annotations

from typing import ClassVar

from pydantic import ConfigDict


class Options:
    """Base of rules: frozen dataclasses whose fields are options. Unknown options are an error."""

    __slots__ = ()
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
