"""Synthetic rows of NIST's demographic excerpt: the k-marginal score as SDNist computes it, and rows that break a rule of ages.

The national excerpt of 2019 (27,253 persons), its demographic features (ten columns, "N" a value like others), ε = 1, δ = 1e-9;
ages in 20 quantile bins, which are bought with a tenth of it. SDNist 2's score of rows without an area column: ages in 20 bins of
equal frequency of the real rows, then 500·(2 − the mean over all 45 pairs of the sum of differences of shares). The checks are
those of its inconsistency report that these columns can break. Peers are quoted from its sample reports at ε = 1: AIM 976, with
4.4 % of rows breaking a check of ages, MST 958 and 9.2 %.
"""

from __future__ import annotations

import csv
import gzip
import os
import time
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from _report import report

import cloister as cl

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
SEEDS = 1 if QUICK else 3
DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "census" / "acs_national2019.csv.gz"
BINS = 20
CODES: dict[str, str] = {
    "DEYE": "1 2",
    "DVET": "N 1 2 3 4 5 6",
    "EDU": "N 1 2 3 4 5 6 7 8 9 10 11 12",
    "HOUSING_TYPE": "1 2 3",
    "MSP": "N 1 2 3 4 5 6",
    "OWN_RENT": "0 1 2",
    "PINCP_DECILE": "N 0 1 2 3 4 5 6 7 8 9",
    "RAC1P": "1 2 3 4 5 6 7 8 9",
    "SEX": "1 2",
}
RULES = [
    "AGEP < 15 => MSP = 'N'",
    "AGEP >= 15 => MSP <> 'N'",
    "AGEP < 15 => PINCP_DECILE = 'N'",
    "AGEP >= 15 => PINCP_DECILE <> 'N'",
    "AGEP < 15 => DVET = 'N'",
    "AGEP < 15 => EDU <> '12'",
    "AGEP < 5 => EDU IN ('N', '1', '2', '3', '4')",
    "AGEP < 3 => EDU = 'N'",
    "AGEP >= 15 => EDU <> 'N'",
    "HOUSING_TYPE <> '1' => OWN_RENT = '0'",
    "HOUSING_TYPE = '1' => OWN_RENT <> '0'",
]
Table = dict[str, npt.NDArray[Any]]


def main() -> None:
    """Measure, print for people, print for programs."""
    if not DATA.is_file():
        print("*** The census excerpt is left out: its file is not here ***", flush=True)
        return
    rows = excerpt()
    declared: dict[str, cl.tables.Domain] = {"AGEP": cl.Integer(0, 99)}
    declared |= {name: cl.Category(values.split()) for name, values in CODES.items()}
    cuts = [cl.synth.QuantileBins("AGEP", BINS)]
    for rules in ([], RULES):
        scores, wrong, seconds = [], 0, []
        for _ in range(SEEDS):
            begun = time.process_time()
            model = cl.synth.fit_frame(rows, declared, epsilon=1, delta="1e-9", cuts=cuts, rules=rules)
            frame = model.sample(len(rows["SEX"]))
            drawn = {name: np.asarray(frame[name]) for name in rows}
            seconds.append(time.process_time() - begun)
            scores.append(score(rows, drawn))
            wrong += int(breaking(drawn).sum())
        detail = f"{min(scores):.1f} to {max(scores):.1f} in {SEEDS} runs of {np.median(seconds):.1f} s; quoted: AIM 976, MST 958"
        with_rules = "with rules" if rules else "no rules"
        report(f"synthetic census excerpt, ε = 1, {with_rules}: k-marginal score", float(np.mean(scores)), 979, detail)
        if rules:
            report("synthetic census excerpt: rows that break one of eleven rules", wrong, 0, "AIM 4.4 %, MST 9.2 %", most=True)
        else:
            print(f"without rules {wrong / SEEDS / len(rows['SEX']):.1%} of the rows break one", flush=True)


def excerpt() -> Table:
    """The demographic features, ages as numbers."""
    with gzip.open(DATA, "rt", encoding="utf-8") as lines:
        found = list(csv.DictReader(lines))
    rows: Table = {"AGEP": np.array([int(row["AGEP"]) for row in found])}
    return rows | {name: np.array([row[name] for row in found]) for name in CODES}


def score(real: Table, drawn: Table) -> float:
    """SDNist's k-marginal score of two tables, without an area column."""
    edges = np.unique(np.percentile(real["AGEP"], [place * 100 / BINS for place in range(BINS)], method="higher"))
    edges = np.unique([min(edges[0], drawn["AGEP"].min()), *edges[1:], real["AGEP"].max(), drawn["AGEP"].max()])
    coded = []
    for table in (real, drawn):
        codes = [np.maximum(np.searchsorted(edges, table["AGEP"], side="left") - 1, 0)]
        coded.append(codes + [np.searchsorted(sorted(CODES[name].split()), table[name].astype(str)) for name in CODES])
    differences = []
    for one, other in combinations(range(len(CODES) + 1), 2):
        shares = [np.bincount(codes[one] * 100 + codes[other], minlength=100 * 100) / len(codes[one]) for codes in coded]
        differences.append(np.abs(shares[0] - shares[1]).sum())
    return float(500 * (2 - np.mean(differences)))


def breaking(rows: Table) -> npt.NDArray[np.bool_]:
    """Which rows break a rule: written once more by hand, so that it does not lean on what it checks."""
    age, education = rows["AGEP"].astype(int), rows["EDU"].astype(str)
    child, without = age < 15, {name: rows[name].astype(str) == "N" for name in ("MSP", "PINCP_DECILE", "DVET", "EDU")}
    wrong = (child != without["MSP"]) | (child != without["PINCP_DECILE"]) | (child & ~without["DVET"])
    wrong |= (child & (education == "12")) | ((age < 5) & ~np.isin(education, ["N", "1", "2", "3", "4"]))
    wrong |= ((age < 3) & ~without["EDU"]) | (~child & without["EDU"])
    return np.asarray(wrong | ((rows["HOUSING_TYPE"].astype(str) == "1") == (rows["OWN_RENT"].astype(str) == "0")))


if __name__ == "__main__":
    main()
