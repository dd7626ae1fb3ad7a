"""What an error says on the command line: options instead of Python's parameters, lines of a declarations file instead of `cl.…`.

An option is found among those of the command that was given. A parameter of a table is a line of the declarations file, and a
parameter of a method that `--set` takes goes there. What this command line can't write is not shown.
"""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

import click

from cloister.errors import CloisterError
from cloister.voices import OPEN, Unspeakable, Voice, plain

_OWN = re.compile(r"(?:^|[\s(])--?[a-z]|^(?:def|cloister|python|pip) |\n")
"""A text that is written for a command line, or in a file, already."""
_LINES = frozenset(
    {"unit", "max_rows", "population", "size", "version", "row_is_person", "nullable", "step", "low", "high", "public"}
)
"""What a declarations file says of a table or a column."""
_KINDS = ("Integer", "Real", "Category", "Text", "Date", "Boolean", "Identifier")
_MODELS = {
    "AlphaKAnonymity": "alpha",
    "BetaLikeness": "beta",
    "DeltaDisclosure": "delta",
    "KAnonymity": "k",
    "LDiversity": "l",
    "TCloseness": "t",
}
_COMMANDS = {
    "ledger.raise_budget": "cloister ledger raise",
    "ledger.restore": "cloister ledger restore budget.db --who … --why …",
    "ledger.verify": "cloister ledger verify",
    "survey.to_json": "cloister survey make questions.toml --out exams.json",
    "tally.to_json": "--tally with the name of a file that is not there yet",
}
_OTHERS = {"models": "model", "hierarchies": "hierarchy", "epsilon": "budget"}
_WITH_DELTA = re.compile(r"""cl\.(ApproxDP|ZCDP)\("?([^",]+)"?, (?:delta=)?"([^"]+)"\)""")
_BY_COLUMN = frozenset({"bounds", "hierarchy", "set"})
"""Options whose values are written otherwise than Python's."""


@dataclass(frozen=True, kw_only=True)
class OnCommandLine(Voice):
    """The voice of a command.

    >>> from cloister.cli.questions import query
    >>> voice = OnCommandLine(command=query)
    >>> voice.said('spend="0.1", or a larger pilot='), voice.said('"age": cl.Integer(0, 120)'), voice.told("within=-1 is invalid")
    ('--spend 0.1, or a larger --pilot', 'age = { kind = "integer", low = 0, high = 120 }', '--within -1 is invalid')
    """

    command: click.Command | None

    def given(self, name: str, value: str) -> str:
        """An option with its value, or a line of a file."""
        if name == "columns" and "cl." in value:
            return self.value(value)
        if name == "budget" and (parts := _WITH_DELTA.fullmatch(value)) and self._option("tables"):
            amount = "epsilon" if parts[1] == "ApproxDP" else "rho"
            return f'… = {{ {amount} = "{parts[2]}", delta = "{parts[3]}" }} below [budgets]'
        option, value = self._option(name), re.sub(r"^(?:cl\.)?(?:PureDP|ZCDP)\((.*)\)$", r"\1", value)
        if option is None:
            return self._elsewhere(name, value)
        flag = next(each for each in option.opts if each.startswith("--"))
        if option.is_flag:
            if value != "True":
                raise Unspeakable(name)
            return flag
        if value in OPEN or flag[2:] in _BY_COLUMN or re.search(r"[(\[{].*[(\[{]", value):
            return flag
        told = ",".join(part.strip() for part in self.value(value).split(","))
        return f"{flag} {told if '=' in told else shlex.quote(told)}"

    def bare(self, name: str) -> str:
        """The option."""
        option = self._option(name)
        if option is not None:
            return next(each for each in option.opts if each.startswith("--"))
        if name in _LINES:
            return name
        raise Unspeakable(name)

    def call(self, name: str, positional: Sequence[str], keywords: Sequence[tuple[str, str]]) -> str:
        """A domain as a declarations file writes it; a model, a guarantee; else the keywords."""
        last = name.rpartition(".")[2]
        if last in _KINDS and name.startswith("cl."):
            return _domain(last, positional, keywords)
        if name in _COMMANDS:
            return _COMMANDS[name]
        if last in _MODELS and positional and self._option("models"):
            more = [
                *positional[1:],
                *(value for each, value in keywords if each in ("kind", "distance", "c") and value not in OPEN),
            ]
            return f"--model {_MODELS[last]}={':'.join(map(plain, [positional[0], *more]))}"
        if last in ("PureDP", "ZCDP") and positional:
            return self.given("epsilon" if last == "PureDP" else "rho", positional[0])
        return super().call(name, positional, keywords)

    def declared(self, column: str, domain: str) -> str:
        """A line of the columns in a declarations file."""
        return f"{column if re.fullmatch(r'[A-Za-z0-9_-]+', column) else _text(column)} = {domain}"

    def value(self, text: str) -> str:
        """A value; columns with their domains as lines of a file."""
        if text[:1] == "{" and "cl." in text:
            return self._spoken(text[1:-1])
        return super().value(text)

    def member(self, name: str) -> str:
        """A name with dots that is not called."""
        if name in ("cl.PrivateTable", "cl.PublicTable"):
            return "table of the declarations file"
        if name == "session.tables" and self._option("tables"):
            return "a table of --tables"
        raise Unspeakable(name)

    def joined(self, parts: Sequence[str]) -> str:
        """Options one after the other; lines of a file with commas between."""
        if not parts:
            raise Unspeakable
        return " ".join(parts) if all(part.startswith("--") for part in parts) else ", ".join(parts)

    def told(self, text: str) -> str:
        """What happened, or why."""
        return text if _OWN.search(text) else super().told(text)

    def said(self, text: str) -> str:
        """What to write instead."""
        told = text if _OWN.search(text) else super().said(text).strip()
        return told if told == text or " or " in told else re.sub(r", (?=--)", " ", told)

    def _option(self, name: str) -> click.Option | None:
        wanted = f"--{_OTHERS.get(name, name).replace('_', '-')}"
        options = [each for each in (self.command.params if self.command else ()) if isinstance(each, click.Option)]
        exact = next((each for each in options if f"--{name.replace('_', '-')}" in each.opts), None)
        return exact or next((each for each in options if wanted in each.opts or each.name == name), None)

    def _elsewhere(self, name: str, value: str) -> str:
        if name in _LINES:
            return f"{name} = {_toml(value)}"
        if self._option("set") is not None and value not in OPEN:
            return f"--set {shlex.quote(f'{name}={_json(value)}')}"
        raise Unspeakable(name)


def on_command_line(error: CloisterError, commands: click.Group, words: Sequence[str]) -> str:
    """An error as the command that was given says it.

    >>> from cloister.cli.main import cli
    >>> from cloister.errors import InvalidParameter
    >>> wrong = InvalidParameter("spend='x' is invalid", why="it is not a number", instead='spend="0.1"')
    >>> print(on_command_line(wrong, cli, ["query", "SELECT …"]))
    --spend x is invalid: it is not a number.
      Instead: --spend 0.1
    """
    if _OWN.search(error.what) or _OWN.search(error.instead):
        return str(error)
    command: click.Command | None = commands
    for word in words:
        if not isinstance(command, click.Group):
            break
        command = command.get_command(click.Context(command), word)
    voice = OnCommandLine(command=command)
    return str(CloisterError(voice.told(error.what), why=voice.told(error.why), instead=voice.said(error.instead)))


def _domain(kind: str, positional: Sequence[str], keywords: Sequence[tuple[str, str]]) -> str:
    lines = [f'kind = "{kind.lower()}"']
    if kind == "Category":
        lines.append(f"values = {_toml(positional[0]) if positional else '[…]'}")
    elif positional[1:]:
        lines += [f"low = {_toml(positional[0])}", f"high = {_toml(positional[1])}"]
    lines += [f"{name} = {_toml(value)}" for name, value in keywords]
    return "{ " + ", ".join(lines) + " }"


def _json(value: str) -> str:
    """A value of Python in JSON; a text without its quotes, which `--set` does not need."""
    if value[:1] in "'\"":
        return plain(value)
    return re.sub(r"\bNone\b", "null", _toml(value)).replace("(", "[").replace(")", "]")


def _toml(value: str) -> str:
    return {"True": "true", "False": "false"}.get(value, value.replace("'", '"'))


def _text(text: str) -> str:
    return '"' + text.replace('"', '\\"') + '"'
