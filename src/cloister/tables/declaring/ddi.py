"""DDI Codebook, the XML in which data archives describe a study: its variables, their valid ranges, categories and missing
values.

A document type is refused where it begins, so no entity is ever declared or expanded, and nothing outside the text is read. What
an archive counted in the rows is not taken: `sumStat` (the least and the greatest value that occurs) and `catStat` (how often).
A valid range is the study's own, from its questionnaire. DDI Lifecycle, whose variables refer to lists elsewhere, is not read.
"""

import re
from dataclasses import dataclass, field
from xml.parsers import expat

from cloister.errors import InvalidDeclaration
from cloister.tables.declaring.draft import Codebook, ColumnDraft, refusal

_DEEPEST = 60
_MOST_ENDS = 3


@dataclass
class _Variable:
    name: str
    about: str = ""
    kind: str = ""
    low: str = ""
    high: str = ""
    codes: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    discrete: bool = False
    integer: bool = False

    def draft(self) -> ColumnDraft:
        """What it says of its column. Fewer than three labels within a valid range are the ends of a scale, others categories."""
        codes = [code for code in dict.fromkeys(self.codes) if code not in self.missing]
        scale = bool(self.low and self.high) and not self.discrete and len(codes) < _MOST_ENDS
        kind = "category" if codes and not scale else self.kind
        bounded = kind in ("integer", "real", "date")
        whole = all(re.fullmatch("[-+]?[0-9]+", end) for end in (self.low, self.high))
        return ColumnDraft(
            kind="integer" if kind == "real" and whole and (self.discrete or self.integer) else kind,
            low=self.low if bounded else "",
            high=self.high if bounded else "",
            values=tuple(codes) if kind == "category" else (),
            missing=tuple(dict.fromkeys(self.missing)),
            about=" ".join(self.about.split())[:500],
        )


class _Reading:
    """One reading: elements as they open and close; names without their namespace."""

    def __init__(self) -> None:
        self.found: dict[str, ColumnDraft] = {}
        self._open: list[str] = []
        self._variable: _Variable | None = None
        self._text = ""
        self._code, self._code_missing = "", False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._open.append(name.rpartition(" ")[2])
        if len(self._open) > _DEEPEST:
            raise refusal("its elements are nested too deep", "the codebook as DDI Codebook 2.5")
        each, self._text = self._open[-1], ""
        if each == "var":
            self._variable = _Variable(attributes.get("name", "").strip(), discrete=attributes.get("intrvl") == "discrete")
        if self._variable is None:
            return
        above = self._open[-2] if len(self._open) > 1 else ""
        if each == "range" and above == "valrng":
            self._variable.low = attributes.get("min", "").strip()[:100]
            self._variable.high = attributes.get("max", "").strip()[:100]
            self._variable.integer = attributes.get("UNITS") == "INT"
        elif each == "item" and above == "invalrng":
            self._variable.missing.append(attributes.get("VALUE", "").strip())
        elif each == "catgry":
            self._code, self._code_missing = "", attributes.get("missing", "N") == "Y"
        elif each == "varFormat":
            said = attributes.get("category", "")
            date = said in ("date", "time") or "date" in attributes.get("formatname", "").lower()
            self._variable.kind = "date" if date else "text" if attributes.get("type") == "character" else "real"

    def text(self, piece: str) -> None:
        if len(self._text) < 1000:
            self._text += piece

    def end(self, name: str) -> None:
        each = self._open.pop()
        above = self._open[-1] if self._open else ""
        variable, text = self._variable, self._text.strip()
        if variable is None:
            return
        if each == "labl" and above == "var":
            variable.about = variable.about or text
        elif each == "catValu":
            self._code = text
        elif each == "catgry" and self._code:
            (variable.missing if self._code_missing else variable.codes).append(self._code)
        elif each == "var":
            if variable.name:
                self.found[variable.name] = variable.draft()
            self._variable = None


def read_ddi(text: str) -> Codebook:
    """The variables of a DDI codebook.

    >>> said = '<range min="0" max="120"/>'
    >>> book = read_ddi(f'<codeBook><var name="age"><valrng>{said}</valrng><varFormat type="numeric"/></var></codeBook>')
    >>> book.columns["age"].kind, book.columns["age"].high
    ('real', '120')
    >>> whole = '<valrng><range UNITS="INT" min="0" max="120"/></valrng>'
    >>> read_ddi(f'<codeBook><var name="age">{whole}<varFormat type="numeric"/></var></codeBook>').columns["age"].kind
    'integer'
    """
    reading = _Reading()
    parser = expat.ParserCreate("utf-8", " ")  # whatever its own first line says
    parser.StartElementHandler, parser.EndElementHandler = reading.start, reading.end
    parser.CharacterDataHandler = reading.text
    parser.StartDoctypeDeclHandler = _refuse_doctype
    error: InvalidDeclaration | None = None
    line = 0
    try:
        parser.Parse(text.encode(errors="replace"), True)
    except expat.ExpatError as found:
        line = found.lineno
    except InvalidDeclaration as found:
        error = found
    if error is not None:
        raise error
    if line:
        raise refusal(f"line {line}: it is not XML that can be read", "the codebook as DDI Codebook 2.5")
    if not reading.found:
        raise refusal("it has no variables of DDI Codebook", "the codebook as DDI Codebook 2.5, or as CSV")
    return Codebook(columns=reading.found)


def _refuse_doctype(*_: object) -> None:
    raise refusal("it declares a document type, and entities are not read", "the codebook without <!DOCTYPE …>")
