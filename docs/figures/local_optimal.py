"""The laws of reports that stay inside: on a line, where the window stops at an end, and on a circle, where it turns round."""

from __future__ import annotations

import altair as alt

from cloister.local import CircularPiecewise, OptimalPiecewise

TRUTHS = {1.0: "#c9714f", 4.0: "#8a9a5b", 14.0: "#3f6c8f"}
EPSILON, STEPS = 2, 96


def laws() -> dict[str, dict[float, list[tuple[float, float]]]]:
    """For each mechanism on 0 to 24 and each truth, places and densities of a report."""
    line, circle = OptimalPiecewise(0, 24, EPSILON, grid=STEPS), CircularPiecewise(0, 24, EPSILON, grid=STEPS)
    places = {
        "on a line": line.read(range(line.window.outputs)).tolist(),
        "on a circle": [cell * 24 / STEPS for cell in range(STEPS)],
    }
    rows = {"on a line": line.channel(), "on a circle": circle.channel()}
    inner = {truth: min(max(truth, line.interval.low), line.interval.high) - line.interval.low for truth in TRUTHS}
    points = {
        "on a line": {truth: round(inner[truth] / line.interval.span * STEPS) for truth in TRUTHS},
        "on a circle": {truth: round(truth / 24 * STEPS) for truth in TRUTHS},
    }
    return {
        kind: {
            truth: [
                (place, float(chance) * len(places[kind]) / 24)
                for place, chance in zip(places[kind], rows[kind][points[kind][truth]], strict=True)
            ]
            for truth in TRUTHS
        }
        for kind in places
    }


def chart() -> alt.FacetChart:
    """A row for each, a step line for each true hour."""
    found = laws()
    names = [f"truth {truth:g} h" for truth in TRUTHS]
    points = [
        {"kind": kind, "report": place, "density": density, "truth": f"truth {truth:g} h"}
        for kind, by_truth in found.items()
        for truth, law in by_truth.items()
        for place, density in law
    ]
    return (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=2.5, interpolate="step", opacity=0.85)
        .encode(
            x=alt.X("report:Q", title="report, in hours", scale=alt.Scale(domain=[0, 24])),
            y=alt.Y("density:Q", title="density at ε = 2", scale=alt.Scale(domain=[0, 0.15])),
            color=alt.Color(
                "truth:N",
                title=None,
                sort=names,
                scale=alt.Scale(domain=names, range=list(TRUTHS.values())),
                legend=alt.Legend(orient="top"),
            ),
        )
        .properties(width=440, height=120)
        .facet(row=alt.Row("kind:N", title=None, sort=list(found), header=alt.Header(labelFontSize=12)))
    )
