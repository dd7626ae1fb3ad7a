"""A drawn face, and what the best linear attacker makes of its projections."""

from __future__ import annotations

import altair as alt
import numpy as np

from cloister.compress import DCA, PCA, RUCA, RandomProjection, Rounded, drawn_faces
from cloister.compress.attackers import scaled

SHOWN = 20
"""Pictures of two people whom the attacker has never seen: one with glasses, one without."""


def chart() -> alt.Chart:
    """One row a person, one picture a projection."""
    from sklearn.linear_model import Ridge

    faces = drawn_faces(30, 10)
    known, others = faces.person >= 2, faces.person < 2
    first = [int(np.flatnonzero(others & (faces.glasses == worn))[0]) for worn in (True, False)]
    made = {
        "PCA, 14": PCA(14),
        "random, 14": RandomProjection(14, random_state=1),
        "DCA, 1": DCA(1),
        "RUCA, 1": RUCA(1, rho_p=3),
        "RUCA, one bit": Rounded(RUCA(1, rho_p=3)),
    }
    pictures = [("the picture", faces.pixels[first])]
    for name, projection in made.items():
        projection.fit(faces.pixels[known], faces.glasses[known], faces.person[known])
        z, seen = scaled(projection.transform(faces.pixels[known]), projection.transform(faces.pixels[first]))
        pictures.append((name, Ridge(alpha=1.0).fit(z, faces.pixels[known]).predict(seen)))
    size = int(faces.pixels.shape[1] ** 0.5)
    points = [
        {"name": name, "who": ("with", "without")[place], "x": at % size, "y": at // size, "grey": round(float(value), 2)}
        for name, pixels in pictures
        for place, picture in enumerate(pixels)
        for at, value in enumerate(np.clip(picture, 0, 1))
    ]
    names = [name for name, _ in pictures]
    return (
        alt.Chart(alt.Data(values=points))
        .mark_rect()
        .encode(
            x=alt.X("x:O", axis=None),
            y=alt.Y("y:O", axis=None),
            color=alt.Color("grey:Q", scale=alt.Scale(scheme="greys", domain=[0, 1], reverse=True), legend=None),
            column=alt.Column("name:N", sort=names, title=None, header=alt.Header(labelFontSize=11), spacing=6),
            row=alt.Row("who:N", title="glasses", spacing=6),
        )
        .properties(width=96, height=96)
    )
