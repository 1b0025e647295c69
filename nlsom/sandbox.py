"""The Jinja that prompts are written in: values, conditions and loops, with bounded output.

Jinja's own sandbox keeps prompts from reaching Python, but not from filling the memory or running for ever:
`"x".center(10**10)`, nested loops, a text doubled again and again. So only what prompts need is allowed here,
and whatever makes text or items draws on an allowance for each rendering.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from typing import Any

from jinja2 import StrictUndefined, Undefined, nodes, pass_context
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context, LoopContext
from jinja2.sandbox import SandboxedEnvironment
from jinja2.visitor import NodeTransformer

from nlsom.errors import UsageError
from nlsom.task.base import Task

ALLOWANCE = 1_000_000
"""Characters and items that one rendering may make; each pass of a loop counts as `ROUND` of them."""
ROUND = 20

_NODES = {
    *(nodes.Template, nodes.Output, nodes.TemplateData, nodes.If, nodes.For, nodes.Assign),
    *(nodes.Name, nodes.Const, nodes.Getattr, nodes.Getitem, nodes.Slice, nodes.List, nodes.Tuple),
    *(nodes.Dict, nodes.Pair, nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not, nodes.CondExpr),
    *(nodes.Test, nodes.Filter, nodes.Call, nodes.Keyword, nodes.Concat, nodes.Add, nodes.Sub, nodes.Mul),
    *(nodes.Div, nodes.FloorDiv, nodes.Mod, nodes.Neg, nodes.Pos),
}
_FILTERS = [
    *("abs", "capitalize", "count", "d", "default", "dictsort", "first", "float", "int", "items", "last"),
    *("length", "list", "lower", "map", "max", "min", "reject", "rejectattr", "reverse", "select"),
    *("selectattr", "sort", "string", "title", "trim", "unique", "upper", "wordcount"),
]
_METHODS = {
    *("capitalize", "casefold", "count", "endswith", "find", "get", "index", "isalpha", "isdigit", "items"),
    *("keys", "lower", "lstrip", "removeprefix", "removesuffix", "rsplit", "rstrip", "split", "splitlines"),
    *("startswith", "strip", "title", "upper", "values"),
}
LEFT = "<allowance>"  # not valid Jinja names, so no prompt can use these two
_ROUNDS = "<rounds>"


class Allowance:
    """Characters and items that a rendering may still make."""

    def __init__(self) -> None:
        self._left = ALLOWANCE

    def take(self, made: int) -> None:
        """Takes a number of characters or items.

        Raises:
            SecurityError: That is more than is left.
        """
        self._left -= made
        if self._left < 0:
            raise SecurityError(f"it makes more than {ALLOWANCE} letters")


def _allowance(context: Context) -> Allowance:
    return context[LEFT]


@pass_context
def _rounds(context: Context, items: Iterable[Any]) -> Iterator[Any]:
    for item in items:
        _allowance(context).take(ROUND)
        yield item


@pass_context
def _join(context: Context, items: Iterable[Any], by: str = "", attribute: str | None = None) -> str:
    if attribute is not None:
        items = (context.environment.getattr(item, attribute) for item in items)
    texts: list[str] = []
    for text in map(str, items):
        _allowance(context).take(len(text) + len(by))
        texts.append(text)
    return by.join(texts)


@pass_context
def _replace(context: Context, text: object, old: str, new: str) -> str:
    before = str(text)
    _allowance(context).take(len(before) + before.count(old) * len(new))
    return before.replace(old, new)


class Sandbox(SandboxedEnvironment):
    """A Jinja environment of values, conditions and loops."""

    intercepted_binops = frozenset({"+", "*", "%"})

    def __init__(self) -> None:
        super().__init__(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
        self.globals = {"range": self.globals["range"]}
        self.filters = {name: self.filters[name] for name in _FILTERS}
        self.filters |= {"join": _join, "replace": _replace, _ROUNDS: _rounds}

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Adds within the allowance; refuses to multiply or format text."""
        sized = isinstance(left, Sized) or isinstance(right, Sized)
        if operator != "+" and sized:
            raise SecurityError(f"{operator!r} is for numbers only")
        if sized:
            _allowance(context).take(sum(len(side) for side in (left, right) if isinstance(side, Sized)))
        made = super().call_binop(context, operator, left, right)
        if isinstance(made, int) and made.bit_length() > 64:
            raise SecurityError("a number of more than 64 bits is out of a prompt's reach")
        return made

    def wrap_str_format(self, value: Any) -> None:
        """Does not wrap `str.format`, which `is_safe_attribute` refuses: its output could not be bounded."""

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Allows methods whose results are no larger than their inputs, and all methods of tasks."""
        if callable(value) and not isinstance(value, Undefined) and not isinstance(obj, Task | LoopContext):
            return attr in _METHODS and super().is_safe_attribute(obj, attr, value)
        return super().is_safe_attribute(obj, attr, value)


def bounded(tree: nodes.Template, given: frozenset[str]) -> nodes.Template:
    """Checks a parsed prompt, and makes its loops and joins count against the allowance.

    Args:
        tree: The parsed prompt.
        given: Names that it is given. Lists may contain only these and constants, since lists of lists made
            in a prompt could double in size at each step.

    Raises:
        UsageError: It uses something that prompts may not use.
    """
    for node in tree.find_all(nodes.Node):
        if type(node) not in _NODES or (isinstance(node, nodes.For) and node.recursive):
            raise UsageError(f"line {node.lineno}: a prompt has no {type(node).__name__.lower()}")
        if isinstance(node, nodes.List | nodes.Tuple | nodes.Dict) and getattr(node, "ctx", "load") == "load":
            made = sorted({name.name for name in node.find_all(nodes.Name)} - given)
            if made:
                raise UsageError(f"line {node.lineno}: a list may not hold {made[0]!r}, made in the prompt")
    return _Counted().visit(tree)


class _Counted(NodeTransformer):
    def visit_For(self, node: nodes.For) -> nodes.For:  # noqa: N802
        self.generic_visit(node)
        node.iter = nodes.Filter(node.iter, _ROUNDS, [], [], None, None, lineno=node.lineno)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Expr:  # noqa: N802
        self.generic_visit(node)
        texts = [nodes.Filter(one, "string", [], [], None, None, lineno=node.lineno) for one in node.nodes]
        whole: nodes.Expr = texts[0]
        for text in texts[1:]:
            whole = nodes.Add(whole, text, lineno=node.lineno)
        return whole
