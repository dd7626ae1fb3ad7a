"""Run by the peers' own interpreter: their frequency oracles, timed and judged. A line of JSON in, a line of JSON out.

{"peer": "pure-ldp", "protocol": "OLH", "epsilon": 1, "size": 128, "values": [...]}
{"randomize": seconds, "aggregate": seconds, "estimate": [...]}
"""

import json
import sys
import time

import numpy as np


def pure(protocol, epsilon, size, values):
    import pure_ldp.frequency_oracles as oracles

    kinds = {
        "GRR": (oracles.DEClient, oracles.DEServer, (), {}),
        "OUE": (oracles.UEClient, oracles.UEServer, (), {"use_oue": True}),
        "OLH": (oracles.LHClient, oracles.LHServer, (), {"use_olh": True}),
        "FLH": (oracles.FastLHClient, oracles.FastLHServer, (500,), {"use_olh": True}),
    }
    make_client, make_server, more, named = kinds[protocol]
    client, server = (make(epsilon, size, *more, **named) for make in (make_client, make_server))
    values = [value + 1 for value in values]  # it counts from 1
    began = time.perf_counter()
    reports = [client.privatise(value) for value in values]
    randomized = time.perf_counter()
    for each in reports:
        server.aggregate(each)
    estimate = server.estimate_all(range(1, size + 1), suppress_warnings=True)
    return randomized - began, time.perf_counter() - randomized, list(map(float, estimate))


def multi(protocol, epsilon, size, values):
    from multi_freq_ldpy.pure_frequency_oracles import GRR, LH, UE

    def made(value):
        if protocol == "GRR":
            return GRR.GRR_Client(value, size, epsilon)
        return UE.UE_Client(value, size, epsilon, True) if protocol == "OUE" else LH.LH_Client(value, size, epsilon, True)

    def estimated(reports):
        if protocol == "GRR":
            return GRR.GRR_Aggregator_MI(reports, size, epsilon)
        if protocol == "OUE":
            return UE.UE_Aggregator_MI(reports, epsilon, True)
        return LH.LH_Aggregator_MI(reports, size, epsilon, True)

    estimated([made(0)] * 10)  # it compiles itself when first called
    began = time.perf_counter()
    reports = [made(value) for value in values]
    randomized = time.perf_counter()
    found = estimated(reports)
    return randomized - began, time.perf_counter() - randomized, [float(each) * len(values) for each in found]


for line in sys.stdin:
    asked = json.loads(line)
    run = {"pure-ldp": pure, "multi-freq-ldpy": multi}[asked["peer"]]
    first, second, found = run(asked["protocol"], asked["epsilon"], asked["size"], asked["values"])
    mean = float(np.mean(found))
    print(json.dumps({"randomize": first, "aggregate": second, "estimate": found, "mean": mean}), flush=True)
