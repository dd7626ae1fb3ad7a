"""The text of a guest: taken from a function or a file, and checked before it runs anywhere."""

import ast
import hashlib
import inspect
import re
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

from cloister.errors import InvalidParameter
from cloister.guests.outputs import output_of

_LONGEST = 1 << 20
_LINE_END = re.compile(r"\r\n?|\n")
"""Of Python: other signs that end a line elsewhere stand within one."""
_FUNCTION_IN_R = re.compile(r"^([A-Za-z][A-Za-z0-9._]*)\s*(?:<-|=)\s*function\b", re.MULTILINE)
"""At the beginning of a line: a helper within another function, or an argument, is none that can be called."""


def text_of(function: Callable[..., Any]) -> str:
    """The lines of a function, without its decorators: its helpers are functions of their own, named in `uses=`.

    >>> print(text_of(textwrap.shorten).splitlines()[0])
    def shorten(text, width, **kwargs):
    """
    name = getattr(function, "__name__", "?")
    try:
        source = textwrap.dedent(inspect.getsource(function))
        tree = ast.parse(source)
    except (OSError, TypeError, SyntaxError):
        tree = ast.Module(body=[], type_ignores=[])
    found = tree.body[0] if tree.body else None
    if not isinstance(found, ast.FunctionDef) or found.name != name:
        raise InvalidParameter(
            f"{name} is invalid",
            why="a guest is a function that was written down with `def`, and its text was not found",
            instead='cl.Guest(code="def oldest(rows): …", entry="oldest", …)',
        )
    return "\n".join(_LINE_END.split(source)[found.lineno - 1 : found.end_lineno]) + "\n"


def last_function(code: Any, language: str = "python") -> str:
    """The function that is called where none is named; nothing where there is none, which `check_code` refuses in its words.

    >>> last_function("def first(): ...\\ndef last(rows): ..."), last_function("def f(")
    ('last', '')
    >>> last_function("f <- function(rows) {\\n  g <- function(x) x\\n  g(1)\\n}", "r")
    'f'
    """
    if language == "r":
        return next(reversed(_functions_in_r(code)), "")
    return next((each.name for each in reversed(_statements(code)) if isinstance(each, ast.FunctionDef)), "")


def written_down(text: str) -> tuple[str, str, dict[str, Any]]:
    """The last function of a file that `@cl.guest(…)` stands above: the file without such decorators and without its imports of
    cloister, the name of the function, and what the decorator declares. It is read and never run, so all of it is literal.

    >>> text = "import cloister as cl\\n@cl.guest(inputs=['age'], blocks=9)\\ndef f(rows):\\n    return [1]\\n"
    >>> code, entry, declared = written_down(text)
    >>> code.strip().splitlines()[0], entry, declared
    ('def f(rows):', 'f', {'inputs': ['age'], 'blocks': 9})
    """
    functions = [each for each in _statements(text) if isinstance(each, ast.FunctionDef)]
    above = {each.name: [one for one in each.decorator_list if _is_guest(one)] for each in functions}
    entry = next((each.name for each in reversed(functions) if above[each.name]), "")
    if not entry:
        return text, "", {}
    call = above[entry][-1]
    assert isinstance(call, ast.Call)
    declared = {each.arg: _literal(each.arg, each.value) for each in call.keywords if each.arg and each.arg != "uses"}
    return without(text, "cloister", [one for found in above.values() for one in found]), entry, declared


def without(text: str, package: str, decorators: Sequence[ast.expr] = ()) -> str:
    """A text without the imports of a package, and without some decorators; every other line keeps its number.

    >>> without("import cloister as cl, math\\nx = 1\\n", "cloister")
    'import math\\nx = 1\\n'
    """
    lines = _LINE_END.split(text)
    nodes: list[ast.stmt | ast.expr] = [*_statements(text), *decorators]
    for each in nodes:
        names = each.names if isinstance(each, ast.Import) else []
        kept = [one for one in names if one.name.split(".")[0] != package]
        of_it = isinstance(each, ast.ImportFrom) and (each.module or "").split(".")[0] == package
        if of_it or len(kept) < len(names) or isinstance(each, ast.expr):
            left = ast.unparse(ast.Import(names=kept)) if kept else ""
            lines[each.lineno - 1 : each.end_lineno] = [left, *[""] * ((each.end_lineno or each.lineno) - each.lineno)]
    return "\n".join([*lines, ""] if lines[-1] else lines)


def _statements(text: Any) -> list[ast.stmt]:
    """None of what Python can't read."""
    try:
        parsed: ast.Module = ast.parse(text)
        return parsed.body
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return []


def _is_guest(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else None
    return (called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")) == "guest"


def _literal(name: str, value: ast.expr) -> Any:
    """A literal, or an output that is made of literals."""
    try:
        if not isinstance(value, ast.Call) or name != "output":
            return ast.literal_eval(value)
        called = value.func.attr if isinstance(value.func, ast.Attribute) else getattr(value.func, "id", "")
        given = {each.arg or "": ast.literal_eval(each.value) for each in value.keywords}
        arguments = [ast.literal_eval(each) for each in value.args]
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise InvalidParameter(
            f"{name}= of the decorator is invalid",
            why="a file is read and not run, so what is declared in it is written out",
            instead=f"{name}= with numbers, texts and lists, or the option --{name}",
        ) from None
    return output_of(called, arguments, given)


def check_code(code: Any, entry: str, language: str = "python", field: str = "code") -> None:
    """Refuses a text that cannot be a guest: with the line at which it goes wrong, in the author's words. Of R only that the
    function is there: whether R can read it shows on made-up rows.

    >>> check_code("def f(rows):\\n    return (1", "f")
    Traceback (most recent call last):
    cloister.errors.InvalidParameter: code is invalid: line 2: '(' was never closed. Instead: code that Python can read
    """
    if not isinstance(code, str) or len(code) > _LONGEST or "\0" in code:
        raise InvalidParameter(
            f"{field} is invalid",
            why=f"it is text of at most {_LONGEST:,} characters, without NUL",
            instead="def f(rows): …",
        )
    if language == "r":
        return _check_entry(entry, _functions_in_r(code), "f <- function(rows) …")
    try:
        tree = ast.parse(code)
    except SyntaxError as error:
        problem = f"line {error.lineno}: {error.msg}"
    except (ValueError, RecursionError, MemoryError):
        problem = "it is nested too deeply"
    else:
        problem = ""
    if problem:
        raise InvalidParameter(f"{field} is invalid", why=problem, instead="code that Python can read")
    names = [each.name for each in tree.body if isinstance(each, ast.FunctionDef)]
    return _check_entry(entry, names, f"def {entry if str(entry).isidentifier() else 'f'}(rows): …")


def _check_entry(entry: str, names: Sequence[str], instead: str) -> None:
    if entry not in names:
        raise InvalidParameter(
            f"entry={entry!r} is invalid",
            why=f"the code has no function of that name: it has {', '.join(map(repr, names)) or 'none'}",
            instead=f"entry={names[-1]!r}" if names else instead,
        )


def _functions_in_r(code: Any) -> list[str]:
    return _FUNCTION_IN_R.findall(code) if isinstance(code, str) else []


def digest_of(code: str, parts: Sequence[str]) -> str:
    """A name of a text together with what is declared of it."""
    whole = hashlib.sha256()
    for each in (code, *parts):
        raw = each.encode()
        whole.update(len(raw).to_bytes(8, "big") + raw)
    return whole.hexdigest()
