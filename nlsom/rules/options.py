"""What pydantic is told where a rule's options are read from a society's file."""

from __future__ import annotations

from typing import ClassVar

from pydantic import ConfigDict


class Options:
    """Base of the rules: frozen dataclasses whose fields are their options; an unknown option is an error."""

    __slots__ = ()
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
