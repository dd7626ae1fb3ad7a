"""Occupations that no one collected: 32,561 people name theirs by three protocols, each on their own device.

python examples/learn_local_privacy.py

Where the environment variable CLOISTER_DATA names a folder with adult/adult_train.csv.gz, the real file is asked; otherwise the
same occupations are rebuilt from their published counts.
"""

from __future__ import annotations

import csv
import gzip
import os
from pathlib import Path

import numpy as np

from cloister.local import DirectEncoding, HistogramEncoding, UnaryEncoding

OCCUPATIONS = {
    "Prof-specialty": 4140,
    "Craft-repair": 4099,
    "Exec-managerial": 4066,
    "Adm-clerical": 3770,
    "Sales": 3650,
    "Other-service": 3295,
    "Machine-op-inspct": 2002,
    "?": 1843,
    "Transport-moving": 1597,
    "Handlers-cleaners": 1370,
    "Farming-fishing": 994,
    "Tech-support": 928,
    "Protective-serv": 649,
    "Priv-house-serv": 149,
    "Armed-Forces": 9,
}


def occupations() -> list[str]:
    """The occupation of each person."""
    path = Path(os.environ.get("CLOISTER_DATA", "")) / "adult" / "adult_train.csv.gz"
    if path.is_file():
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            return [row["occupation"] for row in csv.DictReader(lines)]
    return [name for name, persons in OCCUPATIONS.items() for _ in range(persons)]


def main() -> None:
    """The same question at two ε: the widest margin, and how far the estimates are off."""
    held = np.array(occupations())
    true = np.array([(held == name).sum() for name in OCCUPATIONS])
    for epsilon in (1, 5):
        for protocol in (DirectEncoding, UnaryEncoding, HistogramEncoding):
            oracle = protocol(list(OCCUPATIONS), epsilon=epsilon)
            estimate = oracle.estimate(oracle.aggregate(oracle.randomize(held)))
            off, margin = np.abs(estimate.counts - true).mean(), estimate.margin(0.95).max()
            print(f"ε = {epsilon}, {protocol.__name__:>17}: off by {off:6,.0f} on average, margins up to ± {margin:,.0f}")


if __name__ == "__main__":
    main()
