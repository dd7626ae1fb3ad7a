"""Run by an interpreter of its own: qiyuangong/Mondrian, strict or relaxed, from the folder that is its first argument.

A line of JSON in, {"rows": [[number, …], …], "k": 5, "relaxed": false}; a line out, {"seconds": …, "ncp": …}: its own measure, in
per cent.
"""

import json
import sys

sys.path.insert(0, sys.argv[1])

import mondrian

for line in sys.stdin:
    asked = json.loads(line)
    data = [[*row, "x"] for row in asked["rows"]]
    _, (ncp, seconds) = mondrian.mondrian(data, asked["k"], asked["relaxed"])
    print(json.dumps({"seconds": seconds, "ncp": ncp}), flush=True)
