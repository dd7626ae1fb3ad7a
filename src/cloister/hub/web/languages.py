"""Texts in the reader's language. Catalogues are read from their .po files when a process starts: nothing is compiled in advance.

A text is its own name: what has no translation is shown in English. `_("%(n)s rows", n=…)` puts values in; a text without values
is taken as it stands, so that "95 %" needs no doubling there. Values that are no markup are escaped where the text meets markup.
Where one English word has two translations, its context says which: `pgettext("attacker", "Who")`, `NC_("attacker", "Who")`.
A text into which values were put already is known by its shape (`retelling.py`).
"""

import gettext
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from babel import Locale
from babel.messages.pofile import read_po
from markupsafe import Markup, escape

from cloister.hub.web.formats import number
from cloister.hub.web.retelling import CONTEXT, Shapes
from cloister.printable import shown

TRANSLATIONS = Path(__file__).parent / "translations"
PAPERS = "anonymize"
"""Where the texts of papers stand, to the catalogue: in a folder below the hub, as Python that no extractor reads."""


class _InContext(str):
    """A text that knows in which context it is meant; to all but `gettext` it is the text."""

    __slots__ = ("context",)
    context: str


def N_(text: str) -> str:  # noqa: N802  (the name by which gettext's tools know it)
    """Mark a text for translation where it is written; it is translated where it is shown.

    >>> N_("Data sets")
    'Data sets'
    """
    return text


def NC_(context: str, text: str) -> str:  # noqa: N802  (the name by which GLib's tools know it)
    """Mark a text for translation whose English word means something else in other places.

    >>> language_of("zh_CN").gettext(NC_("attacker", "Who")), language_of("zh_CN").gettext("Who"), NC_("attacker", "Who")
    ('攻击者掌握的信息', '人员', 'Who')
    """
    marked = _InContext(text)
    marked.context = context
    return marked


@dataclass(frozen=True, kw_only=True)
class Language:
    """One language of the pages."""

    code: str
    tag: str
    """As HTML names it."""
    name: str
    """As its speakers name it."""
    messages: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict, repr=False)
    """By the English text; where that has a context, by the two with gettext's sign between them."""
    plural: Callable[[int], int] = field(default=lambda count: int(count != 1), repr=False)
    papers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What reports, certificates and risk pages of anonymised tables say: the texts whose place is `PAPERS`."""

    @property
    def locale(self) -> Locale:
        """How this language writes numbers and dates."""
        return Locale.parse(self.code)

    @cached_property
    def shapes(self) -> Shapes:
        """The texts with places, to find again those that were filled before they came here."""
        return Shapes(self.messages)

    def gettext(self, text: str, /, **values: Any) -> str:
        """The text in this language, with the values put in.

        >>> language_of("en").gettext("%(count)s rows", count=3)
        '3 rows'
        """
        found = self.messages.get(f"{text.context}{CONTEXT}{text}") if isinstance(text, _InContext) else None
        found = found or self.messages.get(text)
        if isinstance(found, str) and found:
            return _filled(found, values)
        return _filled(text, values) if values or not self.messages else self.shapes.told(str(text)) or text

    def ngettext(self, one: str, many: str, num: int, /, **values: Any) -> str:
        """The text for so many; `num` is among the values.

        >>> language_of("en").ngettext("%(num)s row", "%(num)s rows", 207653)
        '207,653 rows'
        """
        return self.npgettext("", one, many, num, **values)

    def pgettext(self, context: str, text: str, /, **values: Any) -> str:
        """The text as it is meant in a context; without a translation of its own there, as it is meant elsewhere.

        >>> language_of("en").pgettext("attacker", "Who")
        'Who'
        """
        return self.gettext(NC_(context, text), **values)

    def npgettext(self, context: str, one: str, many: str, num: int, /, **values: Any) -> str:
        """The text for so many, as it is meant in a context."""
        found = (context and self.messages.get(f"{context}{CONTEXT}{one}")) or self.messages.get(one)
        which, values = self.plural(num), {"num": number(num, self.locale), **values}
        if isinstance(found, tuple) and which < len(found) and found[which]:
            return _filled(found[which], values)
        return _filled(one if num == 1 else many, values)


def _filled(text: str, values: Mapping[str, Any]) -> str:
    if not values:
        return text
    if any(hasattr(value, "__html__") for value in values.values()):
        return Markup(escape(text)) % {name: escape(as_shown(value)) for name, value in values.items()}  # noqa: S704  (the text was escaped)
    return text % values


def as_shown(value: Any) -> Any:
    """Every text that a page writes, as it may be shown; what is HTML already was made of such texts."""
    return shown(value, lines=True) if type(value) is str else value


@cache
def language_of(code: str) -> Language:
    """The language of a code; English where there is none.

    >>> language_of("zh_CN").tag, language_of("xx").code
    ('zh-Hans', 'en')
    """
    if code not in LANGUAGES:
        return LANGUAGES["en"]
    known = LANGUAGES[code]
    path = TRANSLATIONS / f"{code}.po"
    if not path.exists():
        return known
    with path.open("rb") as file:
        catalogue = read_po(file, locale=code)
    messages: dict[str, str | tuple[str, ...]] = {}
    papers = {}
    for message in catalogue:
        if message.id and not message.fuzzy:
            if PAPERS in {place for place, _ in message.locations}:
                papers[str(message.id)] = str(message.string)
            context = f"{message.context}{CONTEXT}" if message.context else ""
            if isinstance(message.id, str):
                messages[context + message.id] = str(message.string or "")
            else:
                messages[context + message.id[0]] = tuple(str(each) for each in message.string or ())
    plural_of = gettext.c2py(catalogue.plural_expr)
    return Language(code=code, tag=known.tag, name=known.name, messages=messages, plural=plural_of, papers=papers)


LANGUAGES: dict[str, Language] = {
    "en": Language(code="en", tag="en", name="English"),
    "zh_CN": Language(code="zh_CN", tag="zh-Hans", name="简体中文"),
}


def choose(setting: str, cookie: str, accepted: str) -> str:
    """The code of the language to speak: the person's setting, else the browser's cookie, else what the browser accepts.

    >>> choose("", "", "zh-TW;q=0.4, zh-CN;q=0.9, en;q=0.5"), choose("en", "zh_CN", "zh"), choose("", "", "de")
    ('zh_CN', 'en', 'en')
    """
    for wanted in (setting, cookie):
        if wanted in LANGUAGES:
            return wanted
    asked: list[tuple[float, str]] = []
    for part in accepted[:500].split(","):
        tag, _, rest = part.strip().partition(";")
        try:
            weight = float(rest.strip().removeprefix("q=")) if rest else 1.0
        except ValueError:
            continue
        asked.append((weight, tag.strip().lower()))
    for weight, tag in sorted(asked, key=lambda each: -each[0]):
        primary = tag.partition("-")[0]
        code = {"zh": "zh_CN", "en": "en"}.get(primary)
        if code and weight > 0:
            return code
    return "en"
