"""Texts for pages that no extractor of Babel knows, found in the code.

- titles of what services bring: `Link(title="…")`, and so of actions, jobs and services;
- `request_gettext(request)("…")`, said without a name for it;
- the three parts of errors, which pages translate where they show them, also where a function of the module makes the error of
  what it is given. An f-string gives a text with places (`cloister.hub.web.retelling` knows it again when it is filled);
- what settings mean, and what is weak about them; the notes under answers.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from cloister.hub.web.formats import is_address, is_code

__all__ = ["said", "text_of"]

TITLED = ("Action", "JobType", "Link", "Service")
PARTS = ("what", "why", "instead")
PLACED = {"_set": slice(1, 2), "clean": slice(1, 2), "spoken": slice(1, 2), "weak": slice(1, 2)}
"""Which arguments of a function are texts for people, though its module does not show that."""
NOTES = {"CHOSEN", "FOLLOWS", "NOTE"}
"""Names of the notes that stand under an answer."""
REFUSING = {"refused": 3, "unsupported": 2, "withheld": 2, "wrong": 3}
"""How many first arguments are parts of an error, of functions that other modules call."""
Function = ast.FunctionDef | ast.AsyncFunctionDef


def said(tree: ast.AST, *, errors: bool) -> Iterator[str]:
    """The texts of a module, in the order of its code.

    >>> code = 'Link(title="Ask", path="/ask"); raise Missing("No such job", why=f"{name} is none", instead="/jobs")'
    >>> list(said(ast.parse(code), errors=True))
    ['Ask', 'No such job', '{name} is none']
    """
    makers = {node.name: _parameters(node) for node in ast.walk(tree) if isinstance(node, Function)} if errors else {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in NOTES:
            yield from _texts([node.value], code=True)
        if isinstance(node, ast.Dict):
            yield from _texts([each for key, each in zip(node.keys, node.values, strict=True) if _is(key, "about")], code=True)
        if isinstance(node, Function):
            yield from _texts(_given(node, "title"), code=True)
        if not isinstance(node, ast.Call):
            continue
        name = _name(node.func)
        given = {each.arg: each.value for each in node.keywords if each.arg}
        if name in TITLED:
            yield from _texts([given.get("title")])
        elif name in PLACED:
            yield from _texts(node.args[PLACED[name]], code=True)
        elif isinstance(node.func, ast.Call) and _name(node.func.func) == "request_gettext":
            yield from _texts(node.args[:1])
        elif errors and name in REFUSING and name not in makers:
            yield from _texts(node.args[: REFUSING[name]])
        elif errors and name in makers and set(PARTS) & set(makers[name]):
            named = dict(zip(makers[name], node.args, strict=False)) | given
            yield from _texts([named.get(part) for part in PARTS])
        elif errors and "instead" in given:
            yield from _texts([*node.args[:1], given.get("what"), given.get("title"), given.get("why"), given["instead"]])


def text_of(node: ast.expr | None) -> str:
    """The text that an expression is, with places where values go; "" where it is none.

    >>> text_of(ast.parse('f"{row.name!r} has {len(rows):,} rows of {most}"', mode="eval").body)
    '{name} has {rows} rows of {most}'
    """
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if not isinstance(node, ast.JoinedStr):
        return ""
    text, seen = "", {}
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            name, whole = _place(part.value), ast.unparse(part.value)
            while seen.setdefault(name, whole) != whole:
                name += "2"
            text += f"{{{name}}}"
        elif isinstance(part, ast.Constant):
            text += str(part.value)
    return text


def _place(node: ast.expr) -> str:
    """A name for the place of a value: the last that is named in it."""
    if isinstance(node, ast.Call):
        return _place(node.args[0] if node.args else node.func.value if isinstance(node.func, ast.Attribute) else node.func)
    if isinstance(node, ast.Subscript):
        return _place(node.value)
    return (_name(node) or "value").strip("_").lower()


def _texts(nodes: list[ast.expr | None], *, code: bool = False) -> Iterator[str]:
    """Those that are texts for people: not addresses, not a value alone; and, where they stand among code, no code."""
    for node in nodes:
        if isinstance(node, ast.IfExp):
            yield from _texts([node.body, node.orelse], code=code)
            continue
        text = text_of(node)
        plain = re.sub(r"\{\w+\}", "9", text) if isinstance(node, ast.JoinedStr) else text
        if isinstance(node, ast.JoinedStr) and " " not in plain:
            continue
        if re.search(r"[a-z]", plain) and not is_address(plain) and (code or not is_code(plain)):
            yield text


def _given(node: Function, name: str) -> list[ast.expr | None]:
    """What a parameter is where nothing is given for it."""
    last = [*node.args.posonlyargs, *node.args.args][-len(node.args.defaults) :] if node.args.defaults else []
    known = [*zip(last, node.args.defaults, strict=True), *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)]
    return [default for parameter, default in known if parameter.arg == name]


def _parameters(node: Function) -> list[str]:
    return [each.arg for each in (*node.args.posonlyargs, *node.args.args)] + [each.arg for each in node.args.kwonlyargs]


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _is(node: ast.expr | None, text: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == text
