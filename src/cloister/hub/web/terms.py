"""The glossary of pages: five signs and words of differential privacy, explained where a page first says them.

No template is written for it. When a page is made, `Marked` looks through what it says: the first ε that may be a link becomes
one, to the hub's help. What ε means stands at the end of the page, and the style sheet shows it while the pointer or the keyboard
is on the link; a finger that touches it comes to the help. No script is needed.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from markupsafe import Markup, escape

from cloister.hub.web.languages import N_

NUMBER = r"(?:[ \N{NO-BREAK SPACE}][=≈][ \N{NO-BREAK SPACE}]?[\d./e+-]*\d)?"


@dataclass(frozen=True, kw_only=True)
class Term:
    """A word of the glossary. `title` and `text` are English msgids; `said` is how pages say it, in any language."""

    name: str
    title: str
    text: str
    said: str


TERMS = (
    Term(
        name="epsilon",
        title=N_("Epsilon (ε)"),
        text=N_(
            "How much answers may give away about one person. With or without that person's rows, no outcome is more than e^ε"
            " times as probable. Smaller is more private; what is spent adds up."
        ),
        said=f"ε{NUMBER}",
    ),
    Term(
        name="delta",
        title=N_("Delta (δ)"),
        text=N_(
            "The probability by which an outcome may exceed what ε allows. It should be far below one in the number of people,"
            " such as one in a million."
        ),
        said=f"δ{NUMBER}",
    ),
    Term(
        name="rho",
        title=N_("Rho (ρ)"),
        text=N_(
            "Another measure of how much answers may give away, for Gaussian noise. It adds up, and many small ρ come to less ε"
            " than if each were converted by itself. Smaller is more private."
        ),
        said=f"ρ{NUMBER}",
    ),
    Term(
        name="k",
        title=N_("k (of k-anonymity)"),
        text=N_(
            "In a k-anonymous table, every row has the same quasi-identifiers as at least k − 1 others. With a larger k, a person"
            " is harder to single out. It is not differential privacy."
        ),
        said=(
            r"k(?<![\w’']k)(?:-(?:anonym\w+|匿名)| = \d+|(?=[ ,.;:，。；]\S)|(?<=\S k)(?![\w-]))"
            r"|\d(?<![\w.]\d)\d*-(?:anonym\w+|匿名)"
        ),
    ),
    Term(
        name="margin",
        title=N_("Margin of error"),
        text=N_(
            "Half the width of the interval around a number. With the stated confidence, the answer without noise is at most so"
            " far away. It covers the noise alone, not sampling or clamping."
        ),
        said=r"\b[Mm]argins? of error\b|误差范围",
    ),
)

_SAID = {term.name: re.compile(term.said) for term in TERMS}
_TAG = re.compile(r"""<!--.*?-->|</?[a-zA-Z](?:[^>"']++|"[^"]*"|'[^']*')*>""", re.DOTALL)
_NAME = re.compile(r"</?([a-zA-Z0-9]+)")
_EMPTY = frozenset(("area", "br", "col", "hr", "img", "input", "link", "meta", "source", "use", "wbr"))
_NO_LINK = frozenset(("a", "button", "h1", "h2", "h3", "h4", "label", "legend", "nav", "summary"))
_NOTHING = frozenset(("code", "option", "pre", "samp", "script", "select", "style", "svg", "textarea", "title"))
_FREE, _HINT, _KEPT = range(3)
"""What may stand inside an element: a link; a hint alone, since a link there would be in the way of another; nothing of ours."""
_UNSEEN = re.compile(r"""\s(?:hidden(?=[\s>])|aria-hidden="true"|data-terms="no"|class="(?:[^"]*\s)?sr(?:\s[^"]*)?")""")


class Marked:
    """One page's terms: those that its text has said so far, and where."""

    def __init__(self) -> None:
        self.linked: list[Term] = []
        self._hinted: list[Term] = []

    def mark(self, html: Markup | str, gettext: Callable[[str], str] = str) -> Markup:
        """The HTML of a page's middle, with a link where each term is first said in running text, in a list or in a cell. Where
        a heading or a label says it first, or another link, there is a hint. Code, choices and pictures stay as they are.

        >>> marked = Marked()
        >>> text = str(marked.mark("<h2>What ε is</h2><p>It costs ε. Again: ε.</p>"))
        >>> text.count("<a "), text.count("<abbr "), [term.name for term in marked.linked]
        (1, 1, ['epsilon'])
        """
        sought = [term for term in TERMS if term not in self.linked and _SAID[term.name].search(html)]
        return Markup("".join(self._parts(str(html), sought, gettext)))  # noqa: S704  (what was HTML stays it; what is put in is ours)

    def _parts(self, html: str, sought: list[Term], gettext: Callable[[str], str]) -> Iterator[str]:
        opened: list[tuple[str, int]] = []
        at = 0
        for tag in _TAG.finditer(html) if sought else ():
            if tag.start() > at:
                yield self._said(html[at : tag.start()], opened[-1][1] if opened else _FREE, sought, gettext)
                if not sought:  # the rest says nothing new
                    at = tag.start()
                    break
            yield tag[0]
            at = tag.end()
            _follow(tag[0], opened)
        yield self._said(html[at:], opened[-1][1] if opened else _FREE, sought, gettext)

    def _said(self, text: str, inside: int, sought: list[Term], gettext: Callable[[str], str]) -> str:
        """A text between two tags, with what is put into it; a term that is linked is not sought any more."""
        if inside == _KEPT:
            return text
        found = {}
        for term in sought:
            if (inside == _FREE or term not in self._hinted) and (said := _SAID[term.name].search(text)):
                found[said.start()] = (said, term)
        if not found:
            return text
        parts, at = list[str](), 0
        for start, (said, term) in sorted(found.items()):
            parts += text[at:start], self._put(said[0], term, inside, gettext)
            at = said.end()
            if inside == _FREE:
                sought.remove(term)
        return "".join((*parts, text[at:]))

    def _put(self, said: str, term: Term, inside: int, gettext: Callable[[str], str]) -> str:
        if inside == _HINT:
            self._hinted.append(term)
            return f'<abbr class="term" title="{escape(gettext(term.text))}">{said}</abbr>'
        self.linked.append(term)
        return f'<a class="term" id="says-{term.name}" href="/help#{term.name}" aria-describedby="tip-{term.name}">{said}</a>'


def _follow(tag: str, opened: list[tuple[str, int]]) -> None:
    """Keep count of the elements that are open, and of what may stand inside them."""
    name = _NAME.match(tag)
    if name is None or tag.endswith("/>") or name[1].lower() in _EMPTY:
        return
    kind = name[1].lower()
    if tag.startswith("</"):
        last = next((place for place in range(len(opened) - 1, -1, -1) if opened[place][0] == kind), len(opened))
        del opened[last:]
        return
    own = _KEPT if kind in _NOTHING or _UNSEEN.search(tag) else _HINT if kind in _NO_LINK else _FREE
    opened.append((kind, max(own, opened[-1][1]) if opened else own))
