"""The report as a page that stands alone: no script, nothing fetched, fit to print."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloister.anonymize.paper import facts, paired_bars, section, table
from cloister.anonymize.risks.words import NOT_PRIVATE, added_warnings, recognised, spelling_warnings
from cloister.printable import escape

if TYPE_CHECKING:
    import altair as alt

    from cloister.anonymize.report import Report


def body_of(report: Report) -> str:
    """What stands on the page.

    >>> from cloister.anonymize import Anonymizer, KAnonymity
    >>> anonymizer = Anonymizer(quasi=["age"], models=[KAnonymity(2)], suppression=0)
    >>> _ = anonymizer.fit_transform({"age": [30, 31, 60, 61]})
    >>> "2-anonymity" in body_of(anonymizer.report_)
    True
    """
    lost = [(name, before, after) for name, (before, after) in report.utility.items() if max(before, after) <= 1]
    pairs = [
        ("rows", f"{report.published}, {report.suppressed:,} suppressed"),
        ("classes of rows that look alike", f"{report.classes:,}"),
        ("search", f"{report.search}" + (f"; {report.proof}" if report.proof else "")),
        (report.metric, f"{report.score:.6g}"),
    ]
    if report.kept:
        pairs.append(("published as they are", ", ".join(report.kept)))
    if report.dropped:
        pairs.append(("dropped", ", ".join(report.dropped)))
    return "\n".join(
        [
            f"<p class='said'>{escape(NOT_PRIVATE)}.</p>",
            section(
                "Models",
                table(
                    ["model", "column", "asked", "the table has", ""],
                    [
                        [m.model, m.column or "", m.asked, m.reached, "✓ holds" if m.holds else "✗ does not hold"]
                        for m in report.models
                    ],
                ),
                *(
                    f"<p class='said warned'>{escape(each)}</p>"
                    for each in (*spelling_warnings(report.risk), *added_warnings(report.risk))
                ),
            ),
            section("The table", facts(pairs)),
            section(
                "Risk",
                paired_bars("Chance of being recognised", ("before", "after"), recognised(report.risk_before, report.risk)),
            ),
            section(
                "Information loss", paired_bars("Information loss (share of the largest possible)", ("before", "after"), lost)
            ),
            section(
                "Columns",
                table(
                    ["column", "level", "hierarchy"],
                    [
                        [name, "" if report.levels is None else str(report.levels[name]), words]
                        for name, words in report.hierarchies.items()
                    ],
                ),
            )
            if report.hierarchies
            else "",
        ]
    )


_COLOURS = {"before": "#c9714f", "after": "#3f6c8f"}


def report_chart(report: Report) -> alt.VConcatChart:
    """Bars of risk, as shares; under them bars of loss.

    >>> from cloister.anonymize import Anonymizer, KAnonymity
    >>> anonymizer = Anonymizer(quasi=["age"], models=[KAnonymity(2)], suppression=0)
    >>> _ = anonymizer.fit_transform({"age": [30, 31, 60, 61]})
    >>> len(report_chart(anonymizer.report_).vconcat)
    2
    """
    import altair as alt

    from cloister.notebook import offline

    risks = [
        {"what": words, "when": when, "value": value}
        for words, before, after in recognised(report.risk_before, report.risk)
        for when, value in (("before", before), ("after", after))
    ]
    losses = [
        {"what": name, "when": when, "value": value}
        for name, (before, after) in report.utility.items()
        if 0 <= after <= 1 and 0 <= before <= 1
        for when, value in (("before", before), ("after", after))
    ]

    def bars(values: list[dict[str, object]], title: str) -> alt.Chart:
        return (
            alt.Chart(alt.Data(values=values))
            .mark_bar()
            .encode(
                y=alt.Y("what:N", sort=None, title=None),
                yOffset=alt.YOffset("when:N", sort=["before", "after"]),
                x=alt.X("value:Q", title=title, scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%")),
                color=alt.Color("when:N", sort=["before", "after"], title=None, scale=alt.Scale(range=list(_COLOURS.values()))),
            )
            .properties(width=360)
        )

    return offline(
        alt.vconcat(bars(risks, "chance of being recognised"), bars(losses, "information loss (share of the largest possible)"))
    )
