"""The words of pages, messages and help texts: one term a thing, labels that are nouns, input that is invalid and not refused."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from cloister.cli.main import cli
from scripts.translations import HUB, read

AVOIDED = {
    r"trails?": "audit log",
    r"data users?": "analyst",
    r"persons": "people",
    r"log-?ins?|log(ged)? (in|out)": "sign in, session",
    r"anew|present password": "reset, again, current password",
    r"fall-back": "backup codes",
    r"telephone": "phone",
    r"whoever|whosoever": "anyone who, the person who",
    r"besides|beforehand|likelier|shall": "also, in advance, more likely, must",
    r"prices?|buys?|buying|bought|purchases?|pa(y|ys|id|ying)": "cost, spend, charge",
    r"sleeps?|wakes?|drown(s|ed)?|doors?": "suspended, mostly noise, a plain word",
    r"bars of error": "error bars",
    r"(captured|right) (variance|answers)": "explained variance, accuracy",
    r"allotments?": "share",
    r"ways? in": "sign-in method",
    r"(?<!there )(is|are) no(?! longer| better)|none that there (is|are)|is none": "is not a",
    r"dataset|email|percent": "data set, e-mail, per cent",
    r"moved to it": "clamped",
    r"withheld": "not released",
    r"(mark(ed)? as seen)": "acknowledge",
}
"""What a text does not say, as whole words, and what it says instead."""

EXCEPTIONS = {
    "persons": "what a message of the library calls one side of a comparison",
    "the engine or the method failed; its message is withheld because it may contain private data; what was "
    "reserved for it, if anything, stays charged": ("a message, not a release"),
    'Entries of an action, or of an area such as "dataset".': "how the area is typed",
}
"""Texts that may say it all the same, each with its reason."""

_CLAUSE = re.compile(r"(For what|What|Who|Whoever|Whose|Where|How|Which)\s(?!to\b)")
"""How a label begins that is a clause. A question to a respondent ends with its mark, a sentence with a full stop."""
CLAUSES = {"How it works": "the usual name of such a section"}
"""Labels that may begin so, each with its reason."""

PARSING = {"InvalidParameter", "InvalidDeclaration", "UnsupportedQuery"}
"""Errors of input. Only a budget, a grant or a rule refuses."""
SOURCES = Path(HUB).parent


def _avoided(text: str) -> list[str]:
    """The words of a text that another word should stand for; what stands in backticks, in quotes or as an option is code."""
    plain = re.sub(r"`[^`]*`|--[\w-]+|[\w.]+\.[a-z]+\b|/[\w/{}.-]+|\{[^}]*\}|%\(\w+\)s", "", text)
    return [f"{found[0]} → {instead}" for each, instead in AVOIDED.items() if (found := re.search(rf"\b({each})\b", plain, re.I))]


def _texts() -> Iterator[tuple[str, bool]]:
    """Every text of the catalogue, and whether a template shows it."""
    for message in read("zh_CN"):
        for text in (message.id,) if isinstance(message.id, str) else message.id:
            if text:
                yield text, any(place.startswith("web/templates/") for place, _ in message.locations)


def _helps(group: click.Group, path: str = "cloister") -> Iterator[tuple[str, str]]:
    """The help of every command and option; examples are left out."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield f"{path} {name}", re.sub(r"\x08.*?(\n\n|$)", "", command.help or "", flags=re.DOTALL)
        for option in command.params:
            if isinstance(option, click.Option) and option.help:
                yield f"{path} {name} {option.opts[-1]}", option.help
        if isinstance(command, click.Group):
            yield from _helps(command, f"{path} {name}")


def test_the_rules_find_what_they_forbid() -> None:
    assert _avoided("Whoever has it reads the trail") == ["trail → audit log", "Whoever → anyone who, the person who"]
    assert _avoided("it is no number")
    assert _avoided("All your log-ins end")
    assert _avoided("Log in")
    assert not _avoided("`trail` in {trail}")
    assert _CLAUSE.match("For what it was used")
    assert _CLAUSE.match("What decides")
    assert not _CLAUSE.match("What")


def test_no_text_says_what_another_word_says() -> None:
    wrong = {text: said for text, _ in _texts() if text not in EXCEPTIONS and (said := _avoided(text))}
    assert not wrong, "\n".join(f"{text!r}: {said}" for text, said in wrong.items())


def test_no_help_says_what_another_word_says() -> None:
    wrong = {where: said for where, text in _helps(cli) if text not in EXCEPTIONS and (said := _avoided(text))}
    assert not wrong, "\n".join(f"{where}: {said}" for where, said in wrong.items())


def test_labels_are_no_clauses() -> None:
    labels = [text for text, shown in _texts() if shown and not text.endswith((".", "?", ":")) and _CLAUSE.match(text)]
    assert sorted(set(labels) - set(CLAUSES)) == []


def test_every_exception_is_still_needed() -> None:
    texts = {text for text, _ in _texts()} | {text for _, text in _helps(cli)}
    assert {*EXCEPTIONS, *CLAUSES} <= texts
    assert all(_avoided(text) for text in EXCEPTIONS)
    assert all(_CLAUSE.match(text) for text in CLAUSES)


def _refusals(tree: ast.AST) -> Iterator[int]:
    """Lines where an error of input says that something was refused."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args and getattr(node.func, "id", getattr(node.func, "attr", "")) in PARSING:
            said = "".join(
                each.value for each in ast.walk(node.args[0]) if isinstance(each, ast.Constant) and isinstance(each.value, str)
            )
            if re.search(r"\b(was|were) refused\b", said):
                yield node.lineno


@pytest.mark.parametrize(
    "folder", sorted(each.name for each in SOURCES.iterdir() if each.is_dir() and each.name != "__pycache__")
)
def test_input_is_invalid_and_not_refused(folder: str) -> None:
    found = [
        f"{path.relative_to(SOURCES)}:{line}"
        for path in sorted((SOURCES / folder).rglob("*.py"))
        for line in _refusals(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert found == []


def test_a_refusal_of_input_is_found() -> None:
    assert list(_refusals(ast.parse('raise InvalidParameter(f"{name} was refused", why="it is negative", instead="1")'))) == [1]


def _doubled(template: str) -> list[str]:
    """Texts with `%%` and no values: nothing halves the sign, and a page shows both."""
    return re.findall(r"""_\(("[^"]*%%[^"]*"|'[^']*%%[^']*')\)""", template)


def test_no_page_shows_a_doubled_per_cent_sign() -> None:
    templates = (SOURCES / "hub" / "web" / "templates").rglob("*.html")
    assert [(path.name, found) for path in templates if (found := _doubled(path.read_text(encoding="utf-8")))] == []


def test_a_doubled_per_cent_sign_is_found() -> None:
    assert _doubled("""_("at 95 %% confidence") _('5 %%') _("%(share)s %%", share=5)""") == ['"at 95 %% confidence"', "'5 %%'"]
