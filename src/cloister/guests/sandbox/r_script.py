"""A guest in R: one text that holds the rows, the guest's code, and how its numbers are written down."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

_HEAD = """
local({
  unlockBinding("Sys.which", baseenv())
  assign("Sys.which", function(names) structure(rep("", length(names)), names = names), baseenv())
  for (name in c("methods", "datasets", "utils", "grDevices", "graphics", "stats")) library(name, character.only = TRUE)
})
"""
"""Programs are not looked for: a guest has none, and R's own packages ask for `uname` as they are loaded."""
_TAIL = r"""
.printed <- file("/tmp/printed", open = "w")
sink(.printed); sink(.printed, type = "message")
.found <- tryCatch({{
  {entry} <- local({{
{code}
  {entry} }})
  list(done = TRUE, value = as.numeric(unlist({entry}(.rows))))
}}, error = function(error) list(done = FALSE, why = conditionMessage(error)))
sink(type = "message"); sink(); close(.printed)
.quoted <- function(text) {{
  text <- gsub("[^ -~\n]", "?", substr(paste(text, collapse = "\n"), 1, 2000))
  text <- gsub('(["\\\\])', '\\\\\\1', text)
  paste0('"', gsub("\n", "\\n", text, fixed = TRUE), '"')
}}
.numbers <- function(found) paste(ifelse(is.finite(found), sprintf("%.17g", found),
  ifelse(is.nan(found) | is.na(found), "NaN", ifelse(found > 0, "Infinity", "-Infinity"))), collapse = ", ")
.told <- if (.found$done) paste0('"value": "[', .numbers(.found$value), ']"') else paste0('"failed": ', .quoted(.found$why))
cat(paste0("{{", .told, ', "printed": ', .quoted(readLines("/tmp/printed", warn = FALSE)), "}}"))
"""


def r_script(code: str, entry: str, rows: Mapping[str, Sequence[Any]]) -> str:
    """The text that R runs: `entry(rows)` is called with a list of vectors, and returns numbers.

    >>> print(r_script("f <- function(rows) 1", "f", {"age": [1, None], "town": ["a", 'b"']}).splitlines()[7:9])
    ['"age" = c(1, NA),', '"town" = c("a", "b\\\\"")']
    """
    columns = ",\n".join(f"{_text(name)} = {_vector(values)}" for name, values in rows.items())
    return f"{_HEAD}.rows <- list(\n{columns}\n)\n" + _TAIL.format(entry=entry, code=code)


def _vector(values: Sequence[Any]) -> str:
    return f"c({', '.join(map(_value, values))})" if values else "numeric(0)"


def _value(value: Any) -> str:
    if value is None:
        return "NA"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int | float):
        return repr(value) if math.isfinite(value) else "NaN" if value != value else "Inf" if value > 0 else "-Inf"
    return _text(str(value))


def _text(text: str) -> str:
    """A text of R: whatever could end it, or is not plain, by its number; NUL, which R has no text for, is left out."""
    return '"' + "".join(_letter(each) for each in text if each != "\0") + '"'


def _letter(letter: str) -> str:
    if letter in '"\\':
        return "\\" + letter
    return letter if " " <= letter <= "~" else f"\\U{{{ord(letter):x}}}"
