"""Some thirty problems of learning from the data sets of `../shared/data`, each with what its codebook makes public.

Categories are written as 0-or-1 features that are named `column=value`. Bounds of numbers are the range of the column, widened to
one digit: what a codebook would say in round figures. They serve to compare settings with one another, all of which get the same
ones; a promise takes bounds that were written down before.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from _learn_problems import DATA

MOST_ROWS = 20_000


@dataclass(frozen=True, kw_only=True)
class Codebook:
    """A file, the column to be learnt, those that are categories though they are written as numbers, and those left out."""

    name: str
    files: tuple[str, ...]
    target: str
    number: bool = False
    only: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    missing: tuple[str, ...] = ("?", " ")

    @property
    def here(self) -> bool:
        """Whether its files are there."""
        return all((DATA / file).exists() for file in self.files)

    @cached_property
    def table(self) -> pd.DataFrame:
        """Complete rows, at most so many, in an order that says nothing."""
        parts = [pd.read_csv(DATA / file, na_values=list(self.missing)) for file in self.files]
        found = pd.concat(parts, ignore_index=True)
        kept = [*(self.only or [each for each in found.columns if each != self.target and each not in self.without]), self.target]
        found = found[kept].dropna()
        order = np.random.default_rng(zlib.crc32(self.name.encode())).permutation(len(found))[:MOST_ROWS]
        return found.iloc[order].reset_index(drop=True)

    def split(self, seed: int) -> Split:
        """Two thirds of the rows to learn from."""
        features, y = self.encoded
        order = np.random.default_rng(seed).permutation(len(y))
        cut = 2 * len(y) // 3
        return Split(book=self, X=features, y=y, train=order[:cut], test=order[cut:])

    @cached_property
    def encoded(self) -> tuple[pd.DataFrame, npt.NDArray[np.float64]]:
        """Features, and the column to be learnt: numbers, or places in the list of classes."""
        columns = {}
        for name in self.table.columns.drop(self.target):
            values = self.table[name]
            if name in self.codes or not pd.api.types.is_numeric_dtype(values):
                columns |= {
                    f"{name}={value}": (values == value).to_numpy(dtype=float) for value in sorted(values.unique(), key=str)
                }
            else:
                columns[name] = values.to_numpy(dtype=float)
        values = self.table[self.target]
        y = values.to_numpy(dtype=float) if self.number else np.unique(values, return_inverse=True)[1].astype(float)
        return pd.DataFrame(columns), y

    @cached_property
    def bounds(self) -> tuple[list[float], list[float]]:
        """Of each feature."""
        features = self.encoded[0]
        pairs = [(0.0, 1.0) if "=" in name else rounded(features[name].min(), features[name].max()) for name in features.columns]
        return [low for low, _ in pairs], [high for _, high in pairs]

    @cached_property
    def groups(self) -> list[list[int]]:
        """The places of each category's features."""
        found: dict[str, list[int]] = {}
        for place, name in enumerate(self.encoded[0].columns):
            if "=" in name:
                found.setdefault(name.partition("=")[0], []).append(place)
        return list(found.values())

    @property
    def classes(self) -> list[int]:
        """0, 1, …"""
        return list(range(int(self.encoded[1].max()) + 1))

    @property
    def bounds_y(self) -> tuple[float, float]:
        """Of a number to be learnt."""
        return rounded(float(self.encoded[1].min()), float(self.encoded[1].max()))


@dataclass(frozen=True, kw_only=True, eq=False)
class Split:
    """Rows to learn from, and rows to be judged on."""

    book: Codebook
    X: pd.DataFrame
    y: npt.NDArray[np.float64]
    train: npt.NDArray[np.int64]
    test: npt.NDArray[np.int64]

    @property
    def size(self) -> int:
        """Of the rows to learn from, to one digit: a public hint."""
        return int(float(f"{len(self.train):.0e}"))

    def given(self) -> dict[str, Any]:
        """What every model is told."""
        said = {"bounds": self.book.bounds}
        return {**said, "bounds_y": self.book.bounds_y} if self.book.number else {**said, "classes": self.book.classes}

    def score(self, model: Any) -> float:
        """Fit on the one part, and the accuracy (or R², not below −1) on the other."""
        model.fit(self.X.iloc[self.train], self.y[self.train])
        return max(float(model.score(self.X.iloc[self.test], self.y[self.test])), -1.0)


def rounded(low: float, high: float) -> tuple[float, float]:
    """The interval, widened so that both ends have one digit of its width.

    >>> rounded(17, 90), rounded(0.0512, 0.1634)
    ((10.0, 90.0), (0.0, 0.2))
    """
    step = 10.0 ** math.floor(math.log10(max(high - low, 1e-9)))
    return round(math.floor(low / step + 1e-9) * step, 12), round(math.ceil(high / step - 1e-9) * step, 12)


_ACS = ("AGEP", "SEX", "MSP", "RAC1P", "EDU", "DENSITY", "HOUSING_TYPE")
_ACS_CODES = ("SEX", "MSP", "RAC1P", "HOUSING_TYPE", "OWN_RENT")
_ADULT = ("age", "education-num", "capital-gain", "capital-loss", "hours-per-week")
_NHANES = (
    "Gender",
    "Age",
    "Education",
    "MaritalStatus",
    "HHIncomeMid",
    "BMI",
    "Pulse",
    "BPSysAve",
    "BPDiaAve",
    "TotChol",
    "PhysActive",
)
_STAFF = ("sex", "age", "maritalStatus", "hasChildren", "highestEducationLevel", "optimism", "selfEsteem")
_STAFF_CODES = ("sex", "maritalStatus", "hasChildren", "smoker")
_SIMULATED = tuple(f"health/dasim{site}.csv" for site in (1, 2, 3))
_CONSORTIUM = tuple(f"health/cnsim{site}.csv" for site in (1, 2, 3))

CLASSES = (
    Codebook(name="Adult, 5 columns", files=("adult/adult.csv.gz",), target="income", only=_ADULT),
    Codebook(name="Adult", files=("adult/adult.csv.gz",), target="income", without=("fnlwgt", "education", "native-country")),
    Codebook(
        name="Australian credit",
        files=("uci/australian.csv",),
        target="class",
        codes=("A1", "A4", "A5", "A6", "A8", "A9", "A11", "A12"),
    ),
    Codebook(name="breast cancer", files=("uci/breast_cancer_wisconsin.csv",), target="class", without=("id",)),
    Codebook(name="breast cancer, cells", files=("uci/wdbc.csv",), target="diagnosis", without=("id",)),
    Codebook(name="cars", files=("uci/car.csv",), target="class", codes=("doors", "persons")),
    Codebook(name="German credit", files=("uci/german_credit.csv",), target="class"),
    Codebook(name="ionosphere", files=("uci/ionosphere.csv",), target="class"),
    Codebook(name="king and rook", files=("uci/kr_vs_kp.csv",), target="class"),
    Codebook(name="mushrooms", files=("uci/mushroom.csv",), target="class", without=("stalk-root", "habitat")),
    Codebook(name="connect four", files=("uci/connect4.csv.gz",), target="class"),
    Codebook(name="Pima diabetes", files=("uci/pima_diabetes.csv",), target="outcome"),
    Codebook(name="wine", files=("uci/wine.csv",), target="class"),
    Codebook(name="Framingham", files=("health/framingham_heart.csv",), target="TenYearCHD"),
    Codebook(name="consortium, sex", files=_CONSORTIUM, target="GENDER", codes=("PM_BMI_CATEGORICAL",)),
    Codebook(name="simulated sites, sex", files=_SIMULATED, target="GENDER", codes=("PM_BMI_CATEGORICAL",)),
    Codebook(name="NHANES, diabetes", files=("health/nhanes.csv.gz",), target="Diabetes", only=_NHANES),
    Codebook(name="NHANES, active", files=("health/nhanes.csv.gz",), target="PhysActive", only=_NHANES[:-1]),
    Codebook(
        name="ACS, owners", files=("census/acs_ma2019.csv",), target="OWN_RENT", only=_ACS, codes=_ACS_CODES, missing=("N",)
    ),
    Codebook(
        name="ACS, married",
        files=("census/acs_national2019.csv.gz",),
        target="MSP",
        only=("AGEP", "SEX", "RAC1P", "EDU", "OWN_RENT", "DENSITY"),
        codes=_ACS_CODES,
        missing=("N",),
    ),
    Codebook(name="teachers, smokers", files=("census/teacher_survey.csv",), target="smoker", only=_STAFF, codes=_STAFF_CODES),
    Codebook(name="Californians, married", files=("census/pums.csv",), target="married", codes=("race",)),
    Codebook(
        name="households, town",
        files=("sdcmicro/testdata.csv",),
        target="urbrur",
        only=("roof", "walls", "water", "electcon", "relat", "sex", "age"),
        codes=("roof", "walls", "water", "electcon", "relat", "sex"),
    ),
)

NUMBERS = (
    Codebook(name="insurance", files=("health/insurance.csv",), target="charges", number=True),
    Codebook(name="Californians, income", files=("census/pums.csv",), target="income", number=True, codes=("race",)),
    Codebook(
        name="ACS, schooling",
        files=("census/acs_ma2019.csv",),
        target="EDU",
        number=True,
        only=tuple(each for each in _ACS if each != "EDU"),
        codes=_ACS_CODES,
        missing=("N",),
    ),
    Codebook(
        name="Adult, hours",
        files=("adult/adult.csv.gz",),
        target="hours-per-week",
        number=True,
        only=("age", "education-num", "sex", "marital-status", "workclass", "occupation"),
    ),
    Codebook(
        name="NHANES, body mass",
        files=("health/nhanes.csv.gz",),
        target="BMI",
        number=True,
        only=tuple(each for each in _NHANES if each != "BMI"),
    ),
    Codebook(
        name="NHANES, pressure",
        files=("health/nhanes.csv.gz",),
        target="BPSysAve",
        number=True,
        only=("Gender", "Age", "BMI", "Pulse", "TotChol", "Education"),
    ),
    Codebook(name="consortium, HDL", files=_CONSORTIUM, target="LAB_HDL", number=True, without=("PM_BMI_CATEGORICAL",)),
    Codebook(
        name="simulated sites, body mass",
        files=_SIMULATED,
        target="PM_BMI_CONTINUOUS",
        number=True,
        without=("PM_BMI_CATEGORICAL",),
    ),
    Codebook(
        name="Framingham, pressure",
        files=("health/framingham_heart.csv",),
        target="sysBP",
        number=True,
        without=("diaBP", "TenYearCHD"),
    ),
    Codebook(
        name="teachers, satisfaction",
        files=("census/teacher_survey.csv",),
        target="lifeSatisfaction",
        number=True,
        only=_STAFF,
        codes=_STAFF_CODES,
    ),
    Codebook(name="Pima, glucose", files=("uci/pima_diabetes.csv",), target="glucose", number=True),
    Codebook(
        name="breast cancer, area",
        files=("uci/wdbc.csv",),
        target="area_mean",
        number=True,
        only=("texture_mean", "smoothness_mean", "compactness_mean", "concavity_mean", "symmetry_mean"),
    ),
)


def here(books: Sequence[Codebook]) -> Iterator[Codebook]:
    """Those whose files are there."""
    for book in books:
        if book.here:
            yield book
