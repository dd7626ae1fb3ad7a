"""Answers as a kind of release: what their page shows, what a program reads, their files."""

from __future__ import annotations

from typing import Any

from cloister.hub.guidance import guidance_of
from cloister.hub.releases.kinds import ANSWERS, ReleaseKind, View
from cloister.hub.releases.pages import is_open
from cloister.hub.services.asking.charts import alt_text, has_chart
from cloister.hub.services.asking.downloads import FILES, unpacked
from cloister.hub.services.asking.naming import asked
from cloister.hub.services.asking.shapes import answer_bytes
from cloister.hub.services.asking.showing import mechanism_words, name_of, shown
from cloister.hub.web.languages import N_

CONFIDENCES = ("0.9", "0.95", "0.99")


def _shown(view: View) -> dict[str, Any]:
    """The table, the chart, the guarantee, where it came from."""
    row, release, _ = view.row, unpacked(view.row), view.language.gettext
    rows = shown(release, view.confidence, joint=view.joint)
    return {
        "release": release,
        "rows": rows,
        "mechanism": mechanism_words(release.provenance.mechanism, _),
        "name": row.title or asked(row.sql, _) or name_of(release.provenance.table, rows.columns, _),
        "confidence": f"{view.confidence:g}",
        "confidences": [(each, f"{100 * float(each):g} %") for each in CONFIDENCES],
        "joint": view.joint,
        "chart": has_chart(release),
        "alt": alt_text(release, view.confidence, _) if has_chart(release) else "",
        "guidance": guidance_of(release.cost),
        "may_ask": is_open(view.caller, "question.explain"),
    }


ANSWER = ReleaseKind(
    name=ANSWERS,
    path="/releases",
    trail="release",
    missing=N_("There is no such release"),
    list_template="asking/releases.html",
    listed=lambda *_: {"asked": asked},
    template="asking/release.html",
    shown=_shown,
    told=lambda view: answer_bytes(view.row, unpacked(view.row), view.confidence),
    files=FILES,
)
