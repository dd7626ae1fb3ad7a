"""What an error says on a page: in the page's language, and by the fields of the page.

An error is written in Python (`cloister.voices`). It is translated first, since its pieces of Python are the same in every
language; then each piece is told by the field that holds it, which the template of the page names. A field is looked for in the
page's own template, then in those beside it, then where it is at home.

>>> from functools import partial
>>> from cloister.hub.web.languages import language_of
>>> said = partial(voiced, language_of("en"), "asking/ask.html")
>>> said('spend="0.1"', instead=True), said("spend='x' is invalid"), said('"age": cl.Integer(0, 120)', instead=True)
('0.1 in the field “Spend”', '“x” in the field “Spend” is invalid', 'age: a whole number from 0 to 120')
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cloister.hub.web.languages import N_, Language
from cloister.parsers import json_from
from cloister.voices import OPEN, Unspeakable, Voice

_TEMPLATES = Path(__file__).parent / "templates"
_MACRO = re.compile(r"\b(?:(?:purpose_)?field|line|area|select|checks?|radios)\((?:(?:c|start) ~ )?\"(\w+)\", _\(\"([^\"]+)\"\)")
_LABEL = re.compile(r"<label for=\"f-(?:\{\{ (?:c|start) \}\})?(\w+)\">\s*\{\{ _\(\"([^\"]+)\"\) \}\}")
_AS = {"unit": ("unit_column",), "spend": ("share", "amount"), "epsilon": ("spend",), "rho": ("spend",), "budget": ("amount",)}
"""The fields that a parameter is typed in, where they have other names."""
_AT_HOME = {
    **dict.fromkeys(("spend", "within", "purpose", "confidence"), "asking/terms.html"),
    **dict.fromkeys(("pilot", "sql"), "asking/ask.html"),
    **dict.fromkeys(("delta", "features", "target", "method"), "learning/learn.html"),
    **dict.fromkeys(("max_rows", "unit_column", "size"), "catalogue/_fields.html"),
}
"""Where the fields are that every page may speak of."""
_TITLE = re.compile(r"(?P<place>[a-z_][a-z0-9_]*(?:\.[a-z_][a-z0-9_]*|\[\d+\])*)(?P<rest> is invalid| ?无效)")
_GAP = re.compile(r"(?<=[\u3000-\u9fff“”，：；（）]) (?=[\u3000-\u9fff“，：；（）])")
"""A blank between two signs of Chinese, where a piece of Python stood."""

_KINDS = {
    "Integer": (N_("a whole number from {low} to {high}"), N_("a whole number")),
    "Real": (N_("a number from {low} to {high}"), N_("a number")),
    "Date": (N_("a day from {low} to {high}"), N_("a day")),
    "Moment": (N_("a moment from {low} to {high}"), N_("a moment")),
}
_KINDS_WITHOUT_BOUNDS = {
    "Category": N_("a category, with all its values"),
    "Boolean": N_("yes or no"),
    "Text": N_("a text"),
    "Identifier": N_("an identifier"),
    "Place": N_("a place, with its box or its regions"),
}
_GREEK = {"PureDP": ("ε",), "ApproxDP": ("ε", "δ"), "ZCDP": ("ρ",)}
_LETTERS = {
    "KAnonymity": "k",
    "LDiversity": "l",
    "TCloseness": "t",
    "AlphaKAnonymity": "α",
    "BetaLikeness": "β",
    "DeltaDisclosure": "δ",
}
_DECLARED = ("PrivateTable", "PublicTable")
_MEMBERS = {
    "session.tables": N_("a data set on the page “Data sets”"),
    **dict.fromkeys(("cl.PrivateTable", "cl.PublicTable"), N_("declaration of the data set")),
}
_SHORT = {"True": N_("yes"), "False": N_("no")}


@dataclass(frozen=True, kw_only=True)
class OnPage(Voice):
    """The voice of a page."""

    language: Language
    template: str

    def given(self, name: str, value: str) -> str:
        """A value and its field, or the name in words where the page has no such field."""
        _ = self.language.gettext
        if name == "columns" and "cl." in value:
            return _("{declared}, as the owner of the data set declares it").format(declared=self.value(value))
        told, label = self.value(value), label_of(name, self.template)
        if label is None:
            return f"{_words(name)}: {told}"
        if value == "None":
            return _("nothing in the field “{field}”").format(field=_(label))
        if value in OPEN:
            return _("a text in the field “{field}”").format(field=_(label))
        if value == "True":
            return _("tick “{field}”").format(field=_(label))
        return _("{value} in the field “{field}”").format(value=told, field=_(label))

    def value(self, text: str) -> str:
        """A value, in the page's language."""
        return self.language.gettext(_SHORT[text]) if text in _SHORT else super().value(text)

    def bare(self, name: str) -> str:
        """The field."""
        label = label_of(name, self.template)
        return _words(name) if label is None else _quoted(self.language.gettext(label))

    def wrong(self, name: str, value: str) -> str:
        """What the field holds."""
        _, label = self.language.gettext, label_of(name, self.template)
        if label is None:
            return f"{_words(name)}: {_quoted(self.value(value))}"
        return _("“{value}” in the field “{field}”").format(value=self.value(value), field=_(label))

    def call(self, name: str, positional: Sequence[str], keywords: Sequence[tuple[str, str]]) -> str:
        """What is declared, promised or asked for."""
        _, last = self.language.gettext, name.rpartition(".")[2]
        if last in _KINDS:
            bounded, free = _KINDS[last]
            ends = [self.value(each) for each in positional[:2]]
            return _(bounded).format(low=ends[0], high=ends[1]) if len(ends) == 2 and "…" not in ends else _(free)
        if last in _KINDS_WITHOUT_BOUNDS:
            return _(_KINDS_WITHOUT_BOUNDS[last])
        if last in _GREEK and positional:
            return ", ".join(f"{sign} = {self.value(each)}" for sign, each in zip(_GREEK[last], positional, strict=False))
        if name.startswith("Hierarchy."):
            return _(N_("a hierarchy of the column's values"))
        if last == "Session":  # what the hub itself sets
            raise Unspeakable(name)
        letter = [f"{_LETTERS[last]} = {self.value(positional[0])}"] if last in _LETTERS and positional else []
        told = [self.given(each, value) for each, value in keywords if value not in OPEN]
        parts = self.joined([*letter, *told])
        return _("{declared}, in the declaration of the data set").format(declared=parts) if last in _DECLARED else parts

    def member(self, name: str) -> str:
        """What a name with dots stands for."""
        if name in _MEMBERS:
            return self.language.gettext(_MEMBERS[name])
        if name.startswith("cl."):
            return self.call(name, (), ())
        raise Unspeakable(name)

    def said(self, text: str) -> str:
        """What to write instead; an object of JSON by the fields that hold its values."""
        try:
            given = json_from(text, most=1 << 16) if text.startswith('{"') else None
        except ValueError:
            given = None
        if not isinstance(given, dict):
            return super().said(text)
        return self.joined([self.given(name, repr(value)) for name, value in given.items()])

    def told(self, text: str) -> str:
        """A text, or a title that begins with the name of a field."""
        title = _TITLE.fullmatch(text)
        if title is None:
            return super().told(text)
        parts = re.findall(r"[a-z_][a-z0-9_]*", title["place"])
        label = label_of(parts[-1], self.template)
        named = ", ".join(map(_words, parts)) if label is None else self.language.gettext(label)
        return f"{_quoted(named)}{title['rest']}"


def voiced(language: Language, template: str, text: str, *, instead: bool = False) -> str:
    """A text of an error as the page of a template says it. Of what to write instead, only what can be said on a page.

    >>> from cloister.hub.web.languages import language_of
    >>> voiced(language_of("en"), "access/policy.html", '{"title": "Clinical", "second_factor": true}', instead=True)
    'Clinical in the field “Name”, tick “Two-step verification”'
    """
    voice, translated = OnPage(language=language, template=template), language.gettext(text)
    told = (voice.said if instead else voice.told)(translated)
    return told if told == translated else _GAP.sub("", told)


def label_of(name: str, template: str = "") -> str | None:
    """What a page calls the field of a parameter.

    >>> label_of("spend", "access/new.html"), label_of("max_rows"), label_of("n_jobs")
    ('Share of the budget', 'Most rows of one person', None)
    """
    folder = template.rpartition("/")[0]
    names = (name, *_AS.get(name, ()))
    for known in (_labels(template), _labels(f"{folder}/") if folder else {}):
        for each in names:
            if each in known:
                return known[each]
    return next((_labels(_AT_HOME[each]).get(each) for each in names if each in _AT_HOME), None)


@cache
def _labels(place: str) -> Mapping[str, str]:
    """The labels of a template, or of the templates of a folder: the commonest where there are several."""
    counted: dict[str, Counter[str]] = {}
    for path, found in _found().items():
        if path == place or (place.endswith("/") and path.startswith(place)):
            for name, label in found:
                counted.setdefault(name, Counter())[label] += 1
    return {name: each.most_common(1)[0][0] for name, each in counted.items()}


@cache
def _found() -> dict[str, list[tuple[str, str]]]:
    """The fields of every template with their labels, as the templates say them."""
    files = {path.relative_to(_TEMPLATES).as_posix(): path.read_text("utf-8") for path in sorted(_TEMPLATES.rglob("*.html"))}
    return {path: [*_MACRO.findall(text), *_LABEL.findall(text)] for path, text in files.items()}


def _words(name: str) -> str:
    return name.replace("_", " ").strip()


def _quoted(text: str) -> str:
    return f"“{text}”"
