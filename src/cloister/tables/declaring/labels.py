"""What SPSS, Stata and SAS files say of their variables, as the lines of a codebook: labels, value labels, missing values.

Read by pyreadstat from the head of the file; the rows are not read. Value labels are the questionnaire's own: all codes of a
variable that has more than two are its categories; two, or two whose codes are far apart, may be the ends of a scale.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cloister.tables.declaring.codebooks import rows_of_codebook
from cloister.tables.declaring.draft import Codebook, refusal, said
from cloister.tables.engines.guard import tried

READERS = {
    "sav": "read_sav",
    "zsav": "read_sav",
    "por": "read_por",
    "dta": "read_dta",
    "sas7bdat": "read_sas7bdat",
    "xpt": "read_xport",
}
_SPSS = ("sav", "zsav", "por")
_DATES = re.compile(r"DATE|DDMM|MMDD|YYMM|JULIAN|%T?D|%TC", re.IGNORECASE)
_HEAD = ("name", "kind", "from", "to", "values", "missing", "label")


def read_labels(path: Path) -> Codebook:
    """The codebook that such a file brings along."""
    kind = path.suffix.lower().removeprefix(".")
    if kind not in READERS:
        kinds = ", ".join(READERS)
        raise refusal(f"its name ends in none of {kinds}", "the codebook as CSV")
    lines = tried(lambda: labels_in(str(path), kind), Exception)
    if lines is None:
        raise refusal("the file is damaged", "the codebook as CSV")
    return rows_of_codebook(lines)


def labels_in(path: str, kind: str) -> list[Sequence[str]]:
    """The lines of the codebook in a file of that kind; what its reader raises passes."""
    import pyreadstat

    said = {"user_missing": True} if kind in _SPSS else {}  # otherwise its missing values are not told
    _, about = getattr(pyreadstat, READERS[kind])(path, metadataonly=True, **said)
    return lines_of(about)


def lines_of(about: Any) -> list[Sequence[str]]:
    """What pyreadstat says of a file, as the lines of a codebook.

    >>> from types import SimpleNamespace as Said
    >>> about = Said(column_names=["sex"], column_names_to_labels={"sex": "Sex"},
    ...     variable_value_labels={"sex": {1.0: "m", 2.0: "f"}},
    ...     missing_ranges={"sex": [{"lo": 9.0, "hi": 9.0}]}, original_variable_types={"sex": "F1.0"},
    ...     readstat_variable_types={"sex": "double"})
    >>> lines_of(about)[1]
    ('sex', 'category', '', '', '1;2', '9', 'Sex')
    """
    lines: list[Sequence[str]] = [_HEAD]
    for name in about.column_names:
        labels = about.variable_value_labels.get(name, {})
        missing = _missing(about.missing_ranges.get(name, []), labels)
        codes = [said(code) for code in labels if said(code) not in missing]
        kind, low, high = _kind(about, name), "", ""
        if kind == "real" and _is_scale(codes):
            kind, (low, high), codes = "integer", codes, []
        elif codes:
            kind = "category"
        label = about.column_names_to_labels.get(name) or ""
        lines.append((name, kind, low, high, ";".join(codes), ";".join(missing), " ".join(str(label).split())))
    return lines


def _kind(about: Any, name: str) -> str:
    if about.readstat_variable_types.get(name) == "string":
        return "text"
    written = str(about.original_variable_types.get(name) or "")
    if _DATES.search(written):
        return "date"
    return "integer" if re.fullmatch(r"F[0-9]+\.0", written) else "real"


def _missing(ranges: Sequence[Mapping[str, Any]], labels: Mapping[Any, Any]) -> list[str]:
    """Single codes, and the labelled codes within a range."""
    found = [said(each["lo"]) for each in ranges if each["lo"] == each["hi"]]
    for each in ranges:
        numbers = [code for code in labels if isinstance(code, int | float) and isinstance(each["lo"], int | float)]
        found += [said(code) for code in numbers if each["lo"] <= code <= each["hi"]]
    return list(dict.fromkeys(found))


def _is_scale(codes: Sequence[str]) -> bool:
    """Whether two labels are the ends of a scale, such as 0 and 10."""
    whole = [int(code) for code in codes if re.fullmatch(r"-?[0-9]{1,9}", code)]
    return len(codes) == 2 and len(whole) == 2 and whole[1] - whole[0] > 1
