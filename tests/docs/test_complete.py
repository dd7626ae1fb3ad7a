"""Nothing public is undocumented: every public name has an example that runs, every command has a page that names it."""

from __future__ import annotations

import doctest
import functools
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import click
import pytest

import cloister
from scripts import reference

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def rooms() -> list[str]:
    """`cloister`, and each package and module directly in it."""
    return ["cloister", *(f"cloister.{info.name}" for info in pkgutil.iter_modules(cloister.__path__))]


def public() -> Iterator[tuple[str, str]]:
    """Each (room, name) that a room says is public; of the command line, the commands are documented, below."""
    for room in rooms():
        if room == "cloister.cli":
            continue
        yield from ((room, name) for name in getattr(importlib.import_module(room), "__all__", ()))


def has_example(thing: object) -> bool:
    """Whether the docstring of a thing, or of one of its own methods, holds a doctest."""
    texts = [thing.__doc__ or ""]
    if inspect.isclass(thing):
        own = (vars(base) for base in thing.__mro__ if base.__module__.startswith("cloister"))
        members = [member for namespace in own for member in namespace.values()]
        texts += [
            getattr(member, "__doc__", None) or ""
            for member in members
            if callable(member) or isinstance(member, property | classmethod)
        ]
    return any(doctest.DocTestParser().get_examples(text) for text in texts)


@functools.cache
def examples_that_run() -> str:
    """The source of every example in the package's docstrings and of every Python block in the pages."""
    modules = [path.read_text(encoding="utf-8") for path in (ROOT / "src" / "cloister").rglob("*.py")]
    sources = [example.source for text in modules for example in doctest.DocTestParser().get_examples(text)]
    pages = [path.read_text(encoding="utf-8") for path in [*DOCS.rglob("*.md"), ROOT / "README.md"] if "api" not in path.parts]
    return "\n".join(
        [*sources, *(block for text in pages for block in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE))]
    )


def is_shown(name: str, thing: object) -> bool:
    """Whether a public name has an example of its own, or stands in another one that runs."""
    return has_example(thing) or re.search(rf"\b{re.escape(name)}\b", examples_that_run()) is not None


def is_interface(thing: object) -> bool:
    """Whether it is a shape for others to fill: what fills it has the examples."""
    return inspect.isabstract(thing) or getattr(thing, "_is_protocol", False)


@pytest.mark.parametrize(("room", "name"), list(public()))
def test_every_public_name_is_explained_and_shown_in_an_example_that_runs(room: str, name: str) -> None:
    thing = getattr(importlib.import_module(room), name)
    if isinstance(thing, ModuleType) or not (inspect.isclass(thing) or inspect.isfunction(thing)):
        return  # a module has its own names, a constant or an alias is explained where it is used
    assert (thing.__doc__ or "").strip(), f"{room}.{name} has no docstring"
    assert thing.__doc__ is None or not thing.__doc__.startswith(f"{name}("), (
        f"{room}.{name} has only the docstring that dataclass made"
    )
    if inspect.isclass(thing) and (issubclass(thing, BaseException) or is_interface(thing)):
        return  # all exceptions work as the example of their root does
    assert is_shown(name, thing), f"{room}.{name} stands in no example that runs"


@pytest.mark.parametrize("room", rooms())
def test_every_room_says_what_it_is_for(room: str) -> None:
    assert (importlib.import_module(room).__doc__ or "").strip()


def test_every_package_of_the_tree_is_a_package() -> None:
    folders = {path.parent for path in (ROOT / "src" / "cloister").rglob("*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").exists()] == []


def test_every_public_name_is_in_the_reference(tmp_path: Path) -> None:
    reference.write_all(tmp_path)
    pages = {path.stem: path.read_text(encoding="utf-8") for path in tmp_path.glob("*.md")}
    missing = [
        f"{room}.{name}"
        for room, name in public()
        if room != "cloister.cli"
        and not re.search(rf":: (\S*\.)?{re.escape(name)}$|^- `cl\.{re.escape(name)}` ", pages[room], re.MULTILINE)
    ]
    assert missing == []


def commands(group: click.Group, before: str) -> Iterator[str]:
    """The full name of each command, groups included."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield f"{before} {name}"
        if isinstance(command, click.Group):
            yield from commands(command, f"{before} {name}")


def test_every_command_is_in_the_documentation_and_helps() -> None:
    from click.testing import CliRunner

    from cloister.cli import cli

    text = "\n".join(path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md") if "_build" not in path.parts)
    named = list(commands(cli, "cloister"))
    assert named
    assert [name for name in named if name not in text] == []
    for name in named:
        said = CliRunner().invoke(cli, [*name.split()[1:], "--help"])
        assert said.exit_code == 0, name
        assert "cloister" in said.output, f"{name} --help shows no example"


def test_every_class_of_error_is_explained() -> None:
    from cloister import errors

    page = (DOCS / "how-to" / "read-a-refusal.md").read_text(encoding="utf-8")
    assert [name for name in errors.__all__ if name not in page and name not in ("CloisterError", "LedgerError")] == []


def test_every_page_is_in_a_table_of_contents() -> None:
    """Those of how-to, explanation and decisions are held one by one in test_pages.py: their menus are written in an order."""
    assert ":glob:" in (DOCS / "tutorials" / "index.md").read_text(encoding="utf-8")
    listed = (DOCS / "index.md").read_text(encoding="utf-8") + (DOCS / "reference" / "index.md").read_text(encoding="utf-8")
    loose = [*DOCS.glob("*.md"), *(DOCS / "reference").glob("*.md")]
    assert [path.stem for path in loose if path.stem != "index" and f"\n{path.stem}\n" not in listed] == []


def test_the_glossary_is_in_the_order_of_the_alphabet() -> None:
    page = (DOCS / "glossary.md").read_text(encoding="utf-8")
    terms = re.findall(r"^(\S.*)\n: ", page, re.MULTILINE)
    assert len(terms) > 20
    assert terms == sorted(terms, key=str.lower)
