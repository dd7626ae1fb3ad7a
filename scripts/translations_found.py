"""Texts for pages that no extractor of Babel knows, found in the code.

- titles of what services bring: `Link("…", …)`, `Guide(title="…")`, and so of actions, guides, jobs and services;
- `request_gettext(request)("…")`, said without a name for it;
- the three parts of errors, which pages translate where they show them, also where a function of the module makes the error of
  what it is given. An f-string gives a text with places (`cloister.hub.web.retelling` knows it again when it is filled);
- texts that are put into a variable called like a part of an error, before the error is made of it;
- what settings mean, and what is weak about them; the notes under answers.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from cloister.hub.web.formats import is_address, is_code
from cloister.voices import pieces_of

__all__ = ["said", "text_of"]

TITLED = ("Action", "Guide", "JobType", "Link", "Service")
PARTS = ("what", "why", "instead")
PLACED = {
    "_set": slice(1, 2),
    "check": slice(0, 1),
    "clean": slice(1, 2),
    "contradicted": slice(1, 3),
    "from_lists": slice(1, 2),
    "spoken": slice(1, 2),
    "unreadable": slice(0, 1),
    "weak": slice(1, 2),
}
"""Which arguments of a function are texts for people, though its module does not show that."""
CHECKS = {"check_one_of", "check_whole"}
"""Functions that say `name=value is invalid` of their first two arguments."""
NOTES = {"CHOSEN", "FOLLOWS", "NOTE"}
"""Names of the notes that stand under an answer."""
REFUSING = {
    "needing": ("what", "why"),
    "no_such": ("instead", "why"),
    "refusal": ("why", "instead"),
    "refused": ("what", "why", "instead"),
    "unsupported": ("what", "instead"),
    "withheld": ("what", "why"),
    "wrong": ("what", "why", "instead"),
}
"""Which parts of an error the first arguments are, of functions that other modules call."""
_SENTENCE = re.compile(r"\b[A-Za-z][a-z]+ [a-z]{2,}")
Function = ast.FunctionDef | ast.AsyncFunctionDef


def said(tree: ast.AST, *, errors: bool) -> Iterator[str]:
    """The texts of a module, in the order of its code.

    >>> code = 'Link("Ask", "/ask"); raise Missing("No such job", why=f"{name} is none", instead="/jobs")'
    >>> list(said(ast.parse(code), errors=True))
    ['Ask', 'No such job', '{name} is none']
    """
    makers = {node.name: _parameters(node) for node in ast.walk(tree) if isinstance(node, Function)} if errors else {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in NOTES:
            yield from _texts([node.value], code=True)
        if isinstance(node, ast.Dict):
            yield from _texts([each for key, each in zip(node.keys, node.values, strict=True) if _is(key, "about")], code=True)
            yield from _texts([each for row in node.values if errors for each in _row(row)])
        if errors and isinstance(node, ast.Assign):
            yield from _parts(_assigned(node))
        if isinstance(node, Function):
            yield from _texts(
                [*_given(node, "title"), *(each for part in PARTS[:2] if errors for each in _given(node, part))], code=True
            )
        if not isinstance(node, ast.Call):
            continue
        name = _name(node.func)
        given = {each.arg: each.value for each in node.keywords if each.arg}
        if errors and name == "guarded":
            yield from _texts(node.args[:1])
            yield from _parts(given)
        elif name in TITLED:
            yield from _texts([given.get("title"), *(node.args[:1] if name == "Link" else ())])
        elif name in PLACED:
            yield from _texts(node.args[PLACED[name]], code=True)
        elif isinstance(node.func, ast.Call) and _name(node.func.func) == "request_gettext":
            yield from _texts(node.args[:1])
        elif errors and name in REFUSING and not {"why", "instead"} <= set(makers.get(name, ())):
            yield from _parts(dict(zip(REFUSING[name], node.args, strict=False)) | given)
        elif errors and name in makers and set(PARTS) & set(makers[name]):
            yield from _parts(dict(zip(makers[name], node.args, strict=False)) | given)
        elif errors and "instead" in given:
            if name in CHECKS and isinstance(node.args[1], ast.Constant):
                yield f"{node.args[1].value}={{{_place(node.args[0])}}} is invalid"
            yield from _texts([given.get("title")])
            yield from _parts({"what": node.args[0]} if node.args else {})
            yield from _parts(given)


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
        if re.search(r"[a-z]", plain) and not is_address(plain) and (code or not is_code(plain) or _in_prose(plain)):
            yield text


def _in_prose(text: str) -> bool:
    """Whether a line has pieces of Python among words: a page tells the pieces by its fields, and the words are translated."""
    pieces = pieces_of(text)
    for piece in pieces:
        text = text.replace(piece, "")
    return bool(pieces) and re.search(r"[a-z]{3}", re.sub(r"\{\w+\}", "", text)) is not None


def _parts(named: Mapping[str, ast.expr]) -> Iterator[str]:
    """What was refused and why is said to people, whatever signs it holds; what to do instead may be a line of code."""
    for part in PARTS:
        yield from _texts([named.get(part)], code=part != "instead")


def _row(node: ast.expr) -> list[ast.expr]:
    """The sentences of one row of a table of refusals, `"limit": ("LIMIT in a subquery", "which rows …", "LIMIT at the end")`."""
    told = node.elts if isinstance(node, ast.Tuple) else []
    texts = [each for each in told if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    return [each for each in texts if _SENTENCE.search(each.value)] if len(texts) == len(told) > 1 else []


def _assigned(node: ast.Assign) -> dict[str, ast.expr]:
    """What becomes a part of an error by its name: `why = "…"`, or `why, instead = "…", "…"`."""
    target, value = node.targets[0], node.value
    pairs = [(target, value)]
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        pairs = list(zip(target.elts, value.elts, strict=False))
    return {name.id: said for name, said in pairs if isinstance(name, ast.Name) and name.id in PARTS}


def _given(node: Function, name: str) -> list[ast.expr | None]:
    """What a parameter is where nothing is given for it."""
    last = [*node.args.posonlyargs, *node.args.args][-len(node.args.defaults) :] if node.args.defaults else []
    known = [*zip(last, node.args.defaults, strict=True), *zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)]
    return [default for parameter, default in known if parameter.arg == name]


def _parameters(node: Function) -> list[str]:
    """What a call gives in this order: of a method all but `self`."""
    given = [each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return given[1:] if given[:1] == ["self"] else given


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _is(node: ast.expr | None, text: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == text
