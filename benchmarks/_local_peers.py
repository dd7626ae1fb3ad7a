"""pure-ldp and multi-freq-ldpy, run by an interpreter of their own on the values that ours get.

They need older releases of what they stand on. Their interpreter is named by CLOISTER_PEER_LOCAL (an environment of its own with
`pip install pure-ldp==1.2.0 multi-freq-ldpy==0.2.5 statsmodels "xxhash<3" scikit-learn`); without it the comparison is left out,
and that is said aloud.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

VARIABLE = "CLOISTER_PEER_LOCAL"
RELEASES = {"pure-ldp": "pure-ldp 1.2.0", "multi-freq-ldpy": "multi-freq-ldpy 0.2.5"}


@dataclass(frozen=True, kw_only=True)
class Run:
    """Seconds to make all reports, seconds to read them, and the estimated counts."""

    randomize: float
    aggregate: float
    estimate: npt.NDArray[np.float64]


@cache
def available() -> bool:
    """Whether the peers can be run; where they cannot, this is said once, aloud."""
    found = bool(os.environ.get(VARIABLE))
    if not found:
        print(f"*** {' AND '.join(RELEASES.values())} ARE NOT COMPARED WITH: {VARIABLE} names no interpreter ***", flush=True)
    return found


def theirs(peer: str, protocol: str, *, epsilon: float, size: int, values: npt.NDArray[np.int64]) -> Run:
    """One run of theirs: GRR, OUE, OLH, or FLH (pure-ldp's fast local hashing)."""
    process = _server()
    order = {"peer": peer, "protocol": protocol, "epsilon": epsilon, "size": size, "values": values.tolist()}
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(order) + "\n")
    process.stdin.flush()
    line = process.stdout.readline()
    if not line:
        raise RuntimeError(f"the interpreter that {VARIABLE} names ended; has it {RELEASES[peer]}?")
    told = json.loads(line)
    return Run(randomize=told["randomize"], aggregate=told["aggregate"], estimate=np.array(told["estimate"]))


@cache
def _server() -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    script = Path(__file__).with_name("_local_server.py")
    process = subprocess.Popen(
        [os.environ[VARIABLE], "-B", "-W", "ignore", str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=sys.stderr,
        text=True,
        env=environment,
    )
    atexit.register(process.kill)
    return process
