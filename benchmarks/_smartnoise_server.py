"""Run by the peer's own interpreter, which has SmartNoise SQL and not us: answers one order, a statistic of each group.

The order has the SQL, ε for the whole answer, the ages (a row a group) and their declared bounds. A row is a
person, and all groups are shown, as with declared keys.
"""

import json
import sys

import pandas
import snsql


def answered(order):
    """The numbers by group, for as many runs as are ordered."""
    ages = order["ages"]
    low, high = order["bounds"]
    frame = pandas.DataFrame(
        {"g": [g for g, each in enumerate(ages) for _ in each], "age": [age for each in ages for age in each]}
    )
    table = {
        "row_privacy": True,
        "censor_dims": False,
        "clamp_counts": False,
        "rows": len(frame),
        "g": {"type": "int"},
        "age": {"type": "int", "lower": low, "upper": high},
    }
    query = order["sql"]

    def reader(epsilon):
        privacy = snsql.Privacy(epsilon=epsilon, delta=1e-12)
        return snsql.from_df(frame, privacy=privacy, metadata={"": {"s": {"t": table}}})

    whole = reader(1.0).get_privacy_cost(query)[0]
    found = []
    for _ in range(order["runs"]):
        rows = reader(order["epsilon"] / whole).execute(query)[1:]
        found += [float(value) for _, value in sorted(rows)]
    return found


if __name__ == "__main__":
    json.dump(answered(json.load(sys.stdin)), sys.stdout)
