"""The risk of a table as a page: plain words first, then numbers, then what they do not say, and a place to sign."""

from cloister.anonymize.paper import bars, document, facts, paired_bars, section, signature, table
from cloister.anonymize.risks.summary import Risk
from cloister.anonymize.risks.words import LIMITS, added_warnings, answer, per_cent, sensitive_sentences
from cloister.printable import escape

_BINS = ((1, 1), (2, 2), (3, 4), (5, 9), (10, 19), (20, 49), (50, 99), (100, None))


def page_of(found: Risk, *, title: str = "", of: str = "") -> str:
    """The whole page.

    >>> from cloister.anonymize.risks import risk
    >>> page = risk({"age": [30, 30, 45]}, quasi=["age"]).to_html(of="people.csv")
    >>> "people.csv" in page, "<script" in page, "Signature" in page
    (True, False, True)
    """
    title = title or (f"Risk of {of}" if of else "Risk of a table")
    return document(
        title,
        body_of(found),
        section(
            "Signature",
            "<p>I have read this page and approve the release of the table with the digest above.</p>",
            signature("Name", "Function", "Date", "Signature"),
        ),
    )


def body_of(found: Risk) -> str:
    """What stands on the page, for places that have their own frame."""
    warned = " warned" if found.sample_uniques or any(each.told for each in found.sensitive.values()) else ""
    parts = [
        "<p class='soft'>Is this table anonymous?</p>",
        f"<p class='said{warned}'>{escape(answer(found))}</p>",
        _what(found),
        _found(found),
        *(_learnt(found, name) for name in found.sensitive),
        *(f"<p class='said warned'>{escape(each)}</p>" for each in added_warnings(found)),
        section("Limits of this page", "<ul>" + "".join(f"<li>{escape(each)}</li>" for each in LIMITS) + "</ul>"),
    ]
    return "\n".join(parts)


def _what(found: Risk) -> str:
    pairs = [
        ("rows", f"{found.rows:,}" + (f", and {found.suppressed:,} suppressed" if found.suppressed else "")),
        ("quasi-identifiers", ", ".join(found.quasi) or "the quasi-identifiers"),
        ("sensitive columns", ", ".join(found.sensitive) or "no column was named"),
    ]
    if found.other:
        pairs.append(("columns not looked at", ", ".join(found.other)))
    if found.digest:
        pairs.append(("SHA-256 of the table as CSV", found.digest))
    return section("The table", facts(pairs))


def _found(found: Risk) -> str:
    if not found.rows:
        return ""
    listed = found.matched is not None
    rows = [
        ["Prosecutor", "knows that the target is in the table", per_cent(found.prosecutor)],
        [
            "Journalist",
            "has the list of the population, and does not know who of it is in the table"
            if listed
            else "does not know that the target is in the table; without the population's list, no weaker than the prosecutor",
            per_cent(found.journalist),
        ],
        [
            "Marketer",
            "names everyone in the table by guessing; the share of names that are right"
            if listed
            else "names everyone in the table by guessing, knowing who is in it; the share of names that are right",
            per_cent(found.marketer),
        ],
    ]
    parts = [
        table(["Attacker", "Who", "Success"], rows, numbers=[2], caption="The largest chance to find a person, by who searches."),
        f"<p>A class is the rows that look alike in what others may know. The smallest has {found.k:,} "
        f"row{'s' if found.k != 1 else ''} (k = {found.k:,}); there are {found.classes:,}. "
        f"{found.records_at_risk(0.2):,} rows have a chance of more than one in five to be found, "
        f"{found.records_at_risk(0.05):,} of more than one in twenty.</p>",
        _sizes(found),
    ]
    uniques = found.population_uniques
    if uniques is not None and found.matched is not None:
        outside = (
            f" {found.matched.outside:,} rows stand in classes that the list has fewer of than the table: it is not a list of "
            "the whole population."
            if found.matched.outside
            else ""
        )
        parts.append(
            f"<p>In the population's table {uniques.people:,.0f} of {uniques.population:,} people are the only ones of their "
            f"kind.{outside}</p>"
        )
    elif uniques is not None:
        expected = uniques.people * (found.rows + found.suppressed) / uniques.population
        parts.append(
            f"<p>In a population of {uniques.population:,}, about {uniques.people:,.0f} people are the only ones of their kind "
            f"({escape(uniques.how)}); about {expected:,.0f} of them are expected in this table. Such estimates err by tens of "
            "per cent, and can be many times too high.</p>"
        )
    return section("Re-identification risk", *parts)


def _sizes(found: Risk) -> str:
    values: list[tuple[str, float, str]] = []
    marked: list[int] = []
    for low, high in _BINS:
        rows = sum(s * c for s, c in zip(found.sizes, found.counts, strict=True) if s >= low and (high is None or s <= high))
        name = (
            "alone" if low == 1 else f"among {low}" if low == high else f"among {low}–{high}" if high else f"among {low} or more"
        )
        if low < 5 and rows:
            marked.append(len(values))
        values.append((name, rows / found.rows, f"{rows:,} rows, {per_cent(rows / found.rows)}"))
    return bars("Rows by how many look alike", values, marked=marked)


def _learnt(found: Risk, name: str) -> str:
    each = found.sensitive[name]
    sentences = "".join(f"<li>{escape(sentence)}</li>" for sentence in sensitive_sentences(each))
    return section(
        f"Disclosure of {name!r}",
        f"<ul>{sentences}</ul>",
        "<p class='soft'>The class that differs most from the whole table:</p>",
        paired_bars(f"Shares of {name}", ("in that class", "in the table"), each.worst),
    )
