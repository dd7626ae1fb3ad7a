"""Faces that are projected: who is still recognised, and three ways to say how well a face is rebuilt, of which two mislead.

python examples/learn_compressive.py

Rows are pictures, labels say whose. Drawn faces stand in for those of people; `docs/learn/compressive-privacy.md` has both.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.linear_model import Ridge

from cloister.compress import DCA, PCA, drawn_faces
from cloister.compress.attackers import distance, scaled, use_kept
from cloister.noise import Random

RHO, RHO_PRIME = 10.0, -0.05
Floats = npt.NDArray[np.float64]


def main() -> None:
    """The table of the page, for drawn faces."""
    faces = drawn_faces(15, 10)
    pixels, people = faces.pixels * 255, faces.person
    print("            who it is        shuffled     as published     centred     learned")
    for count in (5, 14, 50):
        for name, made in (("PCA", PCA(count)), ("DCA", discriminant(count))):
            known, others = next(splits(people, 0.3, 1))
            made.fit(pixels[known], people[known])
            seen = recognised(made, pixels, people, known, others)
            told = errors(made, pixels, np.concatenate([known, others]))
            learned = rebuilt(made, pixels, known, others)
            print(f"{count:>3} {name}     {seen:.2f}      " + "".join(f"{each:>13.0f}" for each in (*told, learned)))
    print("published and ours of Yale, 5 dimensions: docs/learn/compressive-privacy.md")


def discriminant(count: int, rho_prime: float = RHO_PRIME) -> DCA:
    """As the published code has it: it solves (S_B + S_W + (ρ + ρ′)I, S_W + ρI), whose vectors are those of our pair."""
    return DCA(count, rho=RHO + rho_prime, rho_prime=rho_prime)


def splits(people: npt.NDArray[Any], test: float, number: int, seed: int = 0) -> Iterator[tuple[Any, Any]]:
    """So many times, pictures to learn from and pictures to be judged, of each person; both in an order of chance."""
    random = Random.deterministic(seed)
    for _ in range(number):
        held = [np.flatnonzero(people == each) for each in np.unique(people)]
        held = [each[random.permutation(len(each))[: max(round(len(each) * test), 1)]] for each in held]
        others = np.concatenate(held)
        known = np.setdiff1d(np.arange(len(people)), others)
        yield known[random.permutation(len(known))], others[random.permutation(len(others))]


def recognised(made: Any, pixels: Floats, labels: npt.NDArray[Any], known: Any, others: Any) -> float:
    """How often a support vector machine on projected pictures names the label."""
    return use_kept(made.transform(pixels[known]), labels[known], made.transform(pixels[others]), labels[others])


def errors(made: Any, pixels: Floats, order: Any) -> tuple[float, float, float]:
    """How far rebuilt pictures are from the true ones, over all of them: in the shuffled order of the split against the order of
    the file, as the published listing compares them; in one order, the mean never taken off; and with the mean."""
    back = np.linalg.pinv(made.components_).T
    published = pixels @ made.components_.T @ back
    centred = made.inverse_transform(made.transform(pixels))
    return distance(published[order], pixels), distance(published, pixels), distance(centred, pixels)


def rebuilt(made: Any, pixels: Floats, known: Any, others: Any) -> float:
    """The same of a ridge regression from projected pictures to pictures, which has seen some: on those that it has not."""
    z, seen = scaled(made.transform(pixels[known]), made.transform(pixels[others]))
    return distance(Ridge(alpha=1.0).fit(z, pixels[known]).predict(seen), pixels[others])


if __name__ == "__main__":
    main()
