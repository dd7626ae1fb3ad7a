"""Every message in the words of its three audiences: Python stays Python, pages speak fields, commands speak options."""

from __future__ import annotations

import ast
import pickle
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest

import cloister
from cloister.cli.declared import budget_of
from cloister.cli.main import cli
from cloister.cli.speaking import OnCommandLine, on_command_line
from cloister.errors import InvalidParameter, UnsupportedQuery
from cloister.hub.web.languages import language_of
from cloister.hub.web.speaking import label_of, voiced
from cloister.pgwire.failures import failure_of
from cloister.voices import Voice, pieces_of, plain

SOURCES = Path(cloister.__file__).parent
OPERATOR = (
    "hub/backup",
    "hub/checking",
    "hub/database",
    "hub/keys",
    "hub/migrations",
    "pgwire",
    "hub/serving",
    "hub/settings",
)
"""What only somebody reads who runs a hub: in its log, its settings or its wire."""
TEMPLATES = ("asking/ask.html", "learning/learn.html", "catalogue/declare.html", "anonymizing/order.html", "error.html")
COMMANDS = ("query", "learn", "anonymize")
PYTHON = re.compile(r"\b(?:cl|session|cloister)\.\w+|\b[A-Za-z_]\w*=(?:[\"'\[(]|[A-Z]|\d)|\b[a-z]+_[a-z_]+=")


@cache
def messages() -> list[tuple[str, str, str, str]]:
    """Where an error is raised, and its three parts, with 9 in each place."""
    found = []
    for path in sorted(SOURCES.rglob("*.py")):
        place = path.relative_to(SOURCES).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and {"why", "instead"} & {each.arg for each in node.keywords}:
                named = {each.arg: each.value for each in node.keywords}
                what = text_of(node.args[0]) if node.args else ""
                found.append((f"{place}:{node.lineno}", what, text_of(named.get("why")), text_of(named.get("instead"))))
    return found


def text_of(node: ast.expr | None) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        text = ""
        for part in node.values:
            text += str(part.value) if isinstance(part, ast.Constant) else "Integer" if text.endswith("cl.") else "9"
        return text
    return ""


def on_pages() -> Iterator[tuple[str, str, str, str]]:
    return (each for each in messages() if not each[0].startswith(("cli/", "client/", "query/controls/", *OPERATOR)))


def python_in(text: str) -> list[str]:
    """Python that a reader would have to know; names of SQL and what stands in quotes are none."""
    quoted = re.sub(r"(?<!\w)'[^']*'|\"[^\"]*\"|“[^”]*”", "‹›", text)
    return [*PYTHON.findall(text if "cl." in text else quoted), *pieces_of(text)]


def test_the_sweep_sees_what_it_looks_for() -> None:
    raised = list(on_pages())
    assert len(raised) > 1000
    assert sum(bool(python_in(each)) for parts in raised for each in parts[1:]) > 500
    assert python_in('a smaller spend=, or cl.Integer(0, 120) and SUM(age) with "x = 1"') == [
        "cl.Integer",
        "spend=",
        "cl.Integer(0, 120)",
    ]


@pytest.mark.parametrize(("code", "template"), [*(("en", each) for each in TEMPLATES), ("zh_CN", TEMPLATES[0])])
def test_no_message_is_python_on_a_page(template: str, code: str) -> None:
    language, left = language_of(code), []
    for place, *parts in on_pages():
        told = [voiced(language, template, text, instead=at == 2) for at, text in enumerate(parts)]
        left += [(place, text, found) for text in told if (found := python_in(text))]
    assert not left, left[:20]


@pytest.mark.parametrize("name", COMMANDS)
def test_no_message_is_python_on_the_command_line(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    voice, left = OnCommandLine(command=command), []
    for place, *parts in messages():
        if place.startswith(("cli/", "hub/", "pgwire/", "query/controls/")) or parts[2].startswith("def "):
            continue
        told = [voice.told(parts[0]), voice.told(parts[1]), voice.said(parts[2])]
        left += [
            (place, text)
            for text in told
            if pieces_of(re.sub(r"--set \S+|--model \S+", "", text)) or re.search(r"\bcl\.\w", text)
        ]
    assert not left, left[:20]


def test_an_alternative_without_words_is_dropped_and_the_others_stay() -> None:
    class Silent(Voice):
        def given(self, name: str, value: str) -> str:
            return self.call(name, (), ()) if name == "random" else f"<{name} {plain(value)}>"

    voice = Silent()
    assert voice.said('spend="0.1", or random=Random()') == "<spend 0.1>"
    assert voice.said("random=Random(), or fewer groups") == "fewer groups"
    assert voice.said("session.close()") == ""
    assert voice.told("session.close() came first") == "close came first"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT sex, COUNT(*) AS n FROM staff WHERE age = 3 GROUP BY sex",
        "CLAMP(pay, 0, 100) or COALESCE(town, 'x=1')",
        "The population's budget isn't open, and nobody's is",
        "ada@example.org, or /account/tokens?next=/x",
        "a table 'cl.Integer(0, 1)' that a person named so",
        "ε = 1, δ = 1e-6; x >= 3 and x != 4 and x == 5",
    ],
)
def test_what_is_no_python_stays_as_it_is(text: str) -> None:
    assert Voice().told(text) == Voice().said(text) == text
    assert voiced(language_of("en"), "asking/ask.html", text, instead=True) == text


def test_texts_of_any_kind_are_told_without_an_end_or_a_failure() -> None:
    strange = [
        "spend=",
        "spend='",
        "cl.Integer(",
        "f(((((",
        "=" * 500,
        "a=" * 400,
        '"' * 99,
        "x=(" * 50,
        "cl.",
        "session.",
        "name=lambda x: (",
        "é=1",
    ]
    for text in strange:
        for voice in (Voice(), OnCommandLine(command=None)):
            voice.told(text)
            voice.said(text)
        voiced(language_of("zh_CN"), "asking/ask.html", text, instead=True)


@pytest.mark.parametrize("budget", ['cl.ApproxDP(1, "1e-6")', 'cl.ZCDP("0.5", delta="1e-6")'])
def test_a_budget_with_a_delta_is_a_line_of_the_declarations_file(budget: str) -> None:
    voice = OnCommandLine(command=cli.get_command(click.Context(cli), "query"))
    line, _, place = voice.said(f"budget={budget}").rpartition(" below ")
    [declared] = tomllib.loads(line.replace("…", "people", 1)).values()
    assert (place, budget_of("people", declared)) == ("[budgets]", eval(budget, {"cl": cloister}))


def test_fields_are_named_as_their_own_page_names_them() -> None:
    assert label_of("purpose", "asking/ask.html") == label_of("purpose", "no/such.html")
    assert label_of("epsilon", "learning/learn.html") == label_of("spend", "learning/learn.html")
    assert label_of("low", "catalogue/declare.html")
    assert label_of("low", "asking/ask.html") is None


def test_python_keeps_its_own_words_and_errors_travel() -> None:
    error = InvalidParameter("spend='x' is invalid", why="it is not a number", instead='spend="0.1"', rule="grant:g1")
    on_command_line(error, cli, ["query"])
    assert str(error) == "spend='x' is invalid: it is not a number.\n  Instead: spend=\"0.1\""
    travelled = pickle.loads(pickle.dumps(error))
    assert (str(travelled), travelled.rule) == (str(error), "grant:g1")


def test_no_message_is_python_for_a_client_of_postgres() -> None:
    left = []
    for place, what, why, instead in on_pages():
        told = failure_of(UnsupportedQuery(what, why=why, instead=instead))
        shown = [re.sub(r"cloister\.(?:spend|within|confidence|fresh|purpose)", "", text) for text in (told.message, told.hint)]
        left += [(place, text) for text in shown if python_in(text)]
    assert not left, left[:20]
