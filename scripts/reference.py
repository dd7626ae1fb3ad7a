"""Write the pages of the API reference: one for each room of the house, listing its public names for Sphinx's autodoc.

A room's public names are its `__all__`. The pages go to docs/reference/api/, which is not kept in the tree. Docstrings are plain
text; `as_rest` keeps their stars, bars and underscores from being read as markup.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "docs" / "reference" / "api"
SPECIAL = re.compile(r"(`+[^`]*`+|\*\*[^*\s][^*]*\*\*)|([|*]|\b_+(?=\W|$)|_(?=\W|$))")


def rooms() -> list[str]:
    """The packages and modules directly under `cloister` that have public names, after `cloister` itself."""
    package = importlib.import_module("cloister")
    found = ["cloister"] + [f"cloister.{info.name}" for info in pkgutil.iter_modules(package.__path__) if info.name != "cli"]
    return [name for name in found if public_names(name)]


def public_names(module: str) -> list[str]:
    """What a module says is public, in the order in which its documentation lists it."""
    return sorted(getattr(importlib.import_module(module), "__all__", []), key=str.lower)


def write_all(target: Path = TARGET, *, each: int = 1) -> None:
    """Write a page for each room and the list of them; take away those of rooms that are gone. `each=3`: of each page a third."""
    target.mkdir(parents=True, exist_ok=True)
    pages = {f"{name}.md": page(name, each) for name in rooms()}
    listed = "\n".join(Path(name).stem for name in pages)
    pages["index.md"] = f"# Python\n\nOne page for each room of the house.\n\n```{{toctree}}\n:maxdepth: 1\n\n{listed}\n```\n"
    for stale in {path.name for path in target.glob("*.md")} - set(pages):
        (target / stale).unlink()
    for name, text in pages.items():
        path = target / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def front() -> str:
    """The Markdown of the page of `cloister` itself: each name that it gives out, and the page where it is at home."""
    lines = [
        "# `cloister`",
        "",
        "```python",
        "import cloister as cl",
        "```",
        "",
        "What `cl` gives out, and the room where it is at home.",
        "",
    ]
    for name in public_names("cloister"):
        thing = getattr(importlib.import_module("cloister"), name)
        home = ".".join(getattr(thing, "__module__", "cloister").split(".")[:2])
        where = f"[`{home}`]({home}.md)" if home != "cloister" and home in rooms() else "here"
        words = (thing.__doc__ or "").strip().partition("\n")[0] if callable(thing) else "The version."
        lines.append(f"- `cl.{name}` ({where}): {words}")
    return "\n".join(lines) + "\n"


def page(module: str, each: int = 1) -> str:
    """The Markdown of one room's page, with each of its names or some of them."""
    if module == "cloister":
        return front()
    documented = [_directive(module, name) for name in public_names(module)[::each]]
    head = [f".. automodule:: {module}\n   :no-members:", f".. currentmodule:: {module}"]
    body = "\n\n".join([*head, *documented])
    return f"# `{module}`\n\n```{{eval-rst}}\n{body}\n```\n"


def _directive(module: str, name: str) -> str:
    thing = getattr(importlib.import_module(module), name)
    if inspect.isclass(thing):
        members = "" if issubclass(thing, BaseException) else "\n   :members:"
        made = [name for name in dir(thing) if re.fullmatch("set_\\w+_request", name)]  # by scikit-learn, in words of its own
        members += f"\n   :exclude-members: {', '.join(made)}" if made else ""
        return f".. autoclass:: {name}{members}\n   :show-inheritance:"
    if inspect.ismodule(thing):
        return f".. automodule:: {thing.__name__}\n   :no-index:"
    if callable(thing):
        return f".. autofunction:: {name}"
    package = importlib.import_module(module)  # a constant's words stand where it is written
    home = package._lazily.homes.get(name) if hasattr(package, "_lazily") else getattr(package, "_HOME", {}).get(name)
    return f".. autodata:: {home}.{name}\n   :no-value:" if home else f".. autodata:: {name}"


def as_rest(lines: list[str]) -> list[str]:
    """Escape what reST would read as markup in plain text, outside examples, code and indented blocks that follow a `::`.

    >>> as_rest(["P(|noise| > m), for all *args and `x_`.", "", ">>> a | b"])
    ['P(\\\\|noise\\\\| > m), for all \\\\*args and `x_`.', '', '>>> a | b']
    """
    escaped, in_example, block = [], False, None
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if line.lstrip().startswith(">>>"):
            in_example = True
        elif not line.strip():
            in_example = False
        if block is not None and line.strip() and indent <= block:
            block = None
        if in_example or block is not None or line.lstrip().startswith(".. "):
            escaped.append(line)
        else:
            escaped.append(SPECIAL.sub(lambda found: found.group(1) or f"\\{found.group(2)}", line))
        if block is None and line.rstrip().endswith("::"):
            block = indent
    return escaped


if __name__ == "__main__":
    write_all()
