"""Run by anjana's own interpreter, in the folder of its examples: one published example a line.

{"frame": "adult", "quasi": [...], "hierarchies": {column: file}, "steps": [["k_anonymity", {...}], ...], "suppression": 50}
{"seconds": ..., "table": {column: [...]}}
"""

import json
import sys
import time

import anjana.anonymity
import pandas as pd
from anjana.anonymity import utils


def adult():
    data = pd.read_csv("data/adult.csv")
    data.columns = data.columns.str.strip()
    for name in data.columns:
        if data[name].dtype == object:
            data[name] = data[name].str.strip()
    return data


def hierarchies(data, files):
    found = {}
    for name, file in files.items():
        if isinstance(file, list):  # widths of intervals, from 0 to 100
            found[name] = {0: data[name].values}
            for level, width in enumerate(file, 1):
                found[name][level] = utils.generate_intervals(data[name].values, 0, 100, width)
        elif file == "*":
            found[name] = {0: data[name].values, 1: ["*"] * len(data)}
        else:
            found[name] = dict(pd.read_csv(file, header=None))
    return found


for line in sys.stdin:
    asked = json.loads(line)
    data = adult() if asked["frame"] == "adult" else pd.read_csv("data/hospital_extended.csv")
    levels = hierarchies(data, asked["hierarchies"])
    begun = time.process_time()
    for function, more in asked["steps"]:
        data = getattr(anjana.anonymity, function)(
            data, asked["identifying"], asked["quasi"], *more, asked["suppression"], levels
        )
    seconds = time.process_time() - begun
    table = {name: [str(value) for value in data[name]] for name in asked["quasi"]} if len(data) else {}
    print(json.dumps({"seconds": seconds, "table": table}), flush=True)
