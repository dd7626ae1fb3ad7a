"""Join a patient's visits with what is known of the patient and of the ward, under one guarantee for all of it."""

from __future__ import annotations

import cloister as cl
from cloister.samples import tables

BY_TOWN = """
    SELECT p.town, COUNT(*) AS visits, COUNT(DISTINCT p.patient) AS patients, AVG(v.stay) AS nights
    FROM patients AS p JOIN visits AS v ON v.patient = p.patient
    GROUP BY p.town"""
BY_BUILDING = """
    SELECT w.building, COUNT(*) AS visits, SUM(v.cost) / COUNT(*) AS cost_a_visit
    FROM visits AS v JOIN wards AS w ON w.ward = v.ward
    GROUP BY w.building"""
TOTALS = """
    SELECT p.sex, AVG(t.nights) AS nights, MEDIAN(t.nights) AS median
    FROM (SELECT patient, CLAMP(SUM(stay), 0, 40) AS nights FROM visits GROUP BY patient) AS t
    JOIN patients AS p ON p.patient = t.patient
    GROUP BY p.sex"""


def main() -> None:
    """Three questions, each with its rows a person."""
    with cl.Session(tables(), budget=cl.PureDP(3)) as session:
        for question in (BY_TOWN, BY_BUILDING, TOTALS):
            rows = session.explain(question, spend=1).parts[0].shape.max_rows
            print(session.sql(question, spend=1))
            print(f"at most {rows} rows of one patient\n")


if __name__ == "__main__":
    main()
