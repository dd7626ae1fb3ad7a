"""A document whose parts are described once, and that is printed as text, read as a page and written to a file."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cloister.anonymize import paper
from cloister.errors import InvalidParameter
from cloister.printable import escape, json_of
from cloister.session import text_table


@dataclass(frozen=True)
class Part:
    """A part of a document as text and as HTML."""

    text: str
    html: str


def said(words: str, *, kind: str = "") -> Part:
    """A paragraph; `kind` is a class of the page's style.

    >>> said("ε < 1").html
    '<p>ε &lt; 1</p>'
    """
    return Part(words, f"<p{f' class={kind!r}' if kind else ''}>{escape(words)}</p>")


def listed(lines: Sequence[str]) -> Part:
    """Sentences, each by itself."""
    return Part("\n".join(lines), "<ul>" + "".join(f"<li>{escape(each)}</li>" for each in lines) + "</ul>")


def facts(*pairs: tuple[str, str]) -> Part:
    """Names and what they stand for; what is empty is left out."""
    known = [each for each in pairs if each[1]]
    return Part("\n".join(f"{name}: {value}" for name, value in known), paper.facts(known))


def table(heads: Sequence[str], lines: Sequence[Sequence[str]], *, numbers: Sequence[int], caption: str = "") -> Part:
    """A table; `numbers` are the columns that are set to the right."""
    text = text_table(heads, lines)
    return Part(f"{caption}\n{text}" if caption else text, paper.table(heads, lines, numbers=numbers, caption=caption))


def drawn(*html: str) -> Part:
    """What only a page shows."""
    return Part("", "".join(html))


def section(title: str, *parts: Part) -> Part:
    """Parts under a heading."""
    texts = [part.text for part in parts if part.text]
    return Part("\n".join([title.lower(), *texts]) if texts else "", paper.section(title, *(part.html for part in parts)))


class Document(ABC):
    """Gives text, plain data and a page, by its title and parts."""

    @property
    @abstractmethod
    def title(self) -> str:
        """Where none other is given."""

    @abstractmethod
    def parts(self) -> list[Part]:
        """In order."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain texts, numbers and lists."""

    def __repr__(self) -> str:
        return "\n\n".join([self.title, *(part.text for part in self.parts() if part.text)])

    def to_html(self, *, title: str = "") -> str:
        """One page with nothing to fetch and no script, for reading and printing."""
        return paper.document(title or self.title, *(part.html for part in self.parts()))

    def _repr_html_(self) -> str:
        return self.to_html()

    def save(self, path: str | Path) -> None:
        """Write it, by the ending: .html, .json or .txt."""
        path = Path(path)
        forms: dict[str, Callable[[], str]] = {
            ".html": self.to_html,
            ".json": lambda: json_of(self.to_dict(), indent=1, allow_nan=False) + "\n",
            ".txt": lambda: f"{self}\n",
        }
        if path.suffix not in forms:
            raise InvalidParameter(
                f"The file {path.name!r} is invalid", why="its ending names no format", instead=f'"{path.stem}.html"'
            )
        path.write_text(forms[path.suffix](), encoding="utf-8")
