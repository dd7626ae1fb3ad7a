"""Pictures of results: bars of shares with the error of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cloister.notebook import offline
from cloister.printable import shown
from cloister.privacy.rational import Exact

if TYPE_CHECKING:
    import altair as alt

    from cloister.local.survey.results import QuestionResult

_MOST = 30


def shares_chart(result: QuestionResult, confidence: Exact = 0.95) -> alt.LayerChart:
    """Shares of the answers, in their order; of a long list the commonest.

    >>> from cloister.local.survey import Survey, YesNo, collect
    >>> survey = Survey("exam", "Exams", [YesNo("copied", "Have you copied?")], levels={"careful": 1})
    >>> len(shares_chart(collect(survey, [])["copied"]).layer)
    2
    """
    import altair as alt

    rows = result.combined.rows(confidence)
    if len(rows) > _MOST:
        rows = sorted(rows, key=lambda row: -row["share"])[:_MOST]
    values = [
        {
            "answer": shown(row["answer"]),
            "share": row["share"],
            "low": row["share"] - row["share_margin"],
            "high": row["share"] + row["share_margin"],
        }
        for row in rows
    ]
    base = alt.Chart(alt.Data(values=values)).encode(y=alt.Y("answer:N", sort=[each["answer"] for each in values], title=None))
    bars = base.mark_bar(color="#3f6c8f", height={"band": 0.6}).encode(
        x=alt.X("share:Q", title="share", axis=alt.Axis(format="%"))
    )
    errors = base.mark_rule(color="#c9714f", strokeWidth=2).encode(x="low:Q", x2="high:Q")
    return offline(alt.layer(bars, errors).properties(width=360, title=shown(result.question.text)))
