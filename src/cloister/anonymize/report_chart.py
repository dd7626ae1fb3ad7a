"""The picture of a report: risk before and after, and what was lost of what could be lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import altair as alt

    from cloister.anonymize.report import Report

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

    from cloister.anonymize.report import recognised
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
