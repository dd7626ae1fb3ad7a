"""Drawn faces: whether somebody wears glasses against who it is, by projection and number of dimensions."""

from __future__ import annotations

import altair as alt

from cloister.compress import DCA, PCA, RUCA, RandomProjection, Rounded, drawn_faces, trade_off

NAMES = ["PCA", "random directions", "DCA", "RUCA", "RUCA, one bit each"]
PEOPLE = 30
DIMENSIONS = (1, 2, 5, 14)
COLOURS = ["#3f6c8f", "#a59a8c", "#c9714f", "#5d7f4b", "#2d2823"]


def chart() -> alt.LayerChart:
    """Thirty people with ten pictures each."""
    faces = drawn_faces(PEOPLE, 10)
    made = [PCA(), RandomProjection(random_state=1), DCA(rho_prime=-1e-6), RUCA(rho_p=3, rho_prime=-1e-6), Rounded(RUCA(rho_p=3))]
    projections = dict(zip(NAMES, made, strict=True))
    found = trade_off(faces.pixels, faces.glasses, faces.person, projections, dimensions=DIMENSIONS, splits=1)
    rows = [{**each, "label": str(each["dimensions"])} for each in found.data()]
    base = alt.Chart(alt.Data(values=rows)).properties(width=440, height=280)
    x = alt.X("utility:Q", scale=alt.Scale(domain=[0.4, 1.02]), title="accuracy of an honest reader: glasses or not")
    y = alt.Y("secret:Q", scale=alt.Scale(domain=[0, 1]), title="accuracy of the best attacker: who is it?")
    colour = alt.Color("method:N", title=None, sort=NAMES, scale=alt.Scale(domain=NAMES, range=COLOURS))
    guess = alt.Chart(alt.Data(values=[{"guess": found.secret_guess}])).mark_rule(strokeDash=[6, 4]).encode(y="guess:Q")
    return alt.layer(
        guess,
        base.mark_line(opacity=0.5).encode(x=x, y=y, color=colour, order="dimensions:Q"),
        base.mark_point(filled=True, size=60, opacity=1).encode(x=x, y=y, color=colour),
        base.mark_text(dx=-8, dy=-6, fontSize=10).encode(x=x, y=y, color=colour, text="label:N"),
    )
