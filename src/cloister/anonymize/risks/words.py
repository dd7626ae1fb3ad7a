"""The risk of a table in words."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from cloister.anonymize.readings import seen

if TYPE_CHECKING:
    from cloister.anonymize.risks.summary import Risk, SensitiveRisk

NOT_PRIVATE = (
    "NOT differentially private: the models cover this table alone. Someone who knows more about a person, or has another "
    "release about the same people, may learn more"
)
LIMITS = (
    "It covers the quasi-identifiers that were named, in the words of the table. Someone who knows a column that "
    "was not named may find more.",
    "It covers this table alone. Another release about the same people can be combined with it, and both together "
    "may point to one person, whatever k is in each.",
    "It does not cover someone who knows more: most of the rows, a rare circumstance, or how the table was made.",
    "A table with these properties is not differentially private. Where that is needed, release answers, a model or a synthetic "
    "table instead, under a budget.",
)
"""What the numbers do not say."""


def per_cent(share: float) -> str:
    """A share as people write it.

    >>> per_cent(1), per_cent(0.0312), per_cent(0.00004), per_cent(0)
    ('100 %', '3.1 %', '0.004 %', '0 %')
    """
    amount = 100 * share
    if amount in (0, 100):
        return f"{amount:.0f} %"
    return f"{amount:.1f} %" if amount >= 0.1 else f"{amount:.1g} %"


def answer(found: Risk) -> str:
    """Is this table anonymous? In a sentence.

    >>> from cloister.anonymize.risks import risk
    >>> print(answer(risk({"age": [30, 30, 45, 45]}, quasi=["age"])))
    Everyone looks like at least 1 other in age.
    """
    where = _listed(found.quasi) if found.quasi else "the quasi-identifiers"
    if not found.rows:
        return "All rows of the table are suppressed."
    if found.sample_uniques:
        rows = f"{found.sample_uniques:,} of {found.rows:,} rows ({per_cent(found.sample_uniques / found.rows)})"
        alone = "are the only ones of their" if found.sample_uniques > 1 else "is the only one of its"
        return f"No. {rows} {alone} kind in {where}."
    others = found.k - 1
    said = f"Everyone looks like at least {others:,} other{'s' if others != 1 else ''} in {where}."
    told = {name: each.told for name, each in found.sensitive.items() if each.told}
    if told:
        said += " But " + "; ".join(f"{name!r} of {rows:,} rows is disclosed all the same" for name, rows in told.items())
        said += ", since all who look like them have the same value."
    return said


def lines_of(found: Risk) -> list[str]:
    """The numbers, a line each."""
    lines = [
        answer(found),
        "",
        f"rows               {found.rows:,} in {found.classes:,} classes"
        + (f"; {found.suppressed:,} suppressed" if found.suppressed else ""),
        f"k                  {found.k:,}",
        f"prosecutor risk    {per_cent(found.prosecutor)} at most",
        f"journalist risk    {per_cent(found.journalist)} at most" + ("" if found.matched else " (no population list was given)"),
        f"marketer risk      {per_cent(found.marketer)} of all rows",
        f"sample uniques     {found.sample_uniques:,}",
    ]
    if found.population_uniques is not None:
        lines.append(f"population uniques {found.population_uniques}")
    for name, each in found.sensitive.items():
        lacking = f" (a value lacks in {each.lacking:,} of the classes)" if each.lacking else ""
        lines += [
            f"{name!r}",
            f"  l                {each.l} (entropy {each.entropy_l:.4g})",
            f"  t                {each.t:.4g} ({each.distance})",
            f"  β                {each.beta:.4g}",
            f"  δ                {each.delta:.4g}{lacking}",
        ]
    warned = [*spelling_warnings(found), *added_warnings(found)]
    return [
        *lines,
        *(["", *warned] if warned else []),
        "",
        "This is not differential privacy: it speaks of this table and these columns alone.",
    ]


def spelling_warnings(found: Risk) -> list[str]:
    """For each sensitive column with several spellings of a value, what is wrong and what to write.

    >>> from cloister.anonymize.risks import risk
    >>> [warning] = spelling_warnings(risk({"age": [30, 30], "ill": ["gout", "Gout"]}, quasi=["age"], sensitive=["ill"]))
    >>> warning.startswith("2 values of 'ill' differ in blanks")
    True
    """
    return [advice(name, each.alike) for name, each in found.sensitive.items() if each.alike]


def added_warnings(found: Risk) -> list[str]:
    """For each column that was named in no role, and for all of them together, how many people are easier to find by it.

    >>> from cloister.anonymize.risks import risk
    >>> added_warnings(risk({"age": [30, 30, 30, 30], "pay": [7, 8, 9, 9]}, quasi=["age"]))
    ["If others also know 'pay', 2 of 4 rows are the only ones of their kind, not 0 (k = 1, not 4)."]
    """
    return [str(each) for each in found.added if each.grows]


def sensitive_sentences(each: SensitiveRisk) -> list[str]:
    """What an attacker learns of a sensitive column, one number a sentence."""
    learnt = (
        f"In every class at least {each.l} different values stand (ℓ = {each.l})."
        if each.l > 1
        else f"{each.told:,} rows are in classes with a single value (ℓ = 1): anyone who finds the class knows it."
    )
    return [
        learnt,
        f"The commonest value of a class is that of up to {per_cent(each.alpha)} of its rows (α = {each.alpha:.4g}).",
        f"The class that differs most from the table is {each.t:.4g} away (t, {each.distance}; 0: as the whole table).",
        f"A value is up to {1 + each.beta:.4g} times as common in a class as in the table (β = {each.beta:.4g}).",
        *([advice(each.column, each.alike)] if each.alike else []),
    ]


def _listed(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def recognised(before: Risk, after: Risk) -> list[tuple[str, float, float]]:
    """Chances of being recognised, before and after, in words."""
    return [
        ("highest probability of a person", before.prosecutor, after.prosecutor),
        ("average probability", before.marketer, after.marketer),
        ("share of rows that are alone", alone(before), alone(after)),
    ]


def alone(risk: Risk) -> float:
    """The share of rows that are the only ones of their kind."""
    return risk.sample_uniques / risk.rows if risk.rows else 0.0


def spelt_alike(values: Iterable[Any]) -> int:
    """How many of different values fall together with another when written in one spelling ("gout", "Gout", "gout "):
    without blanks at their ends, doubled blanks, capitals, and other ways to write the same letters (NFKC).

    What looks the same is counted as one value (`readings`). What can be seen to differ is not, so two spellings of one disease
    look like two diseases: a class may meet ℓ-diversity, and tell the disease of everybody in it.

    >>> spelt_alike(["gout", "gout ", "Gout", "flu", 7]), spelt_alike(["gout", "flu"])
    (3, 0)
    """
    times = Counter(seen(unicodedata.normalize("NFKC", value).casefold()) for value in values if isinstance(value, str))
    return sum(count for count in times.values() if count > 1)


def advice(column: str, count: int) -> str:
    """What is wrong with them, and what to write; no value is named. Nothing where no two fall together.

    >>> advice("ill", 2).partition(":")[0]
    "2 values of 'ill' differ in blanks, capitals or the form of their letters alone"
    >>> advice("ill", 0)
    ''
    """
    if not count:
        return ""
    return (
        f"{count:,} values of {column!r} differ in blanks, capitals or the form of their letters alone: models count them as "
        f"different, and may be met by spelling alone. Write them in one way first: table[{column!r}] = "
        f'table[{column!r}].str.normalize("NFKC").str.strip().str.casefold()'
    )
