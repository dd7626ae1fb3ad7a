"""Exact components and discriminants with a key holder, row by row of the published table, and each circuit really run.

Published (ten owners, keys of 1,024 bits): seconds of an owner, milliseconds of the user who adds, seconds of the key holder, and
of the circuit. Here an owner, the user and the key holder are processor time, at 1,024 bits (marked: breakable), 2,048 and 3,072;
the table of powers, made once a key, is not in it. Circuits run at 2,048 bits in two processes over a socket: the ratio is to the
processor seconds of both parties together: a clock shows how busy a machine is. Of 8 columns 7 are asked for (all 8 would be
the scatter). Rows of SensIT acoustic are not here: rows of its shape (50 columns, three classes) are drawn.

The subspace is compared with numpy's on the same rows, and so is the weighted F1 of a support vector machine on both, one split.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from _clock import best
from _report import report

from cloister.compress import DCA, PCA
from cloister.crypto import AgreementKey, SigningKey
from cloister.together import Paillier
from cloister.together.circuits import Moments, SocketTransport
from cloister.together.service_provider import DataUser, ExactPlan, SendingOwner, ServiceProvider

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
ONLY = os.environ.get("CLOISTER_BENCH_SETS", "").split()
DATA = Path(os.environ.get("CLOISTER_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")) / "uci"
OWNERS, MOST, FRACTION = 10, 40_000_000_000, 16
PROVIDER = SigningKey(b"the provider of a benchmark".ljust(32))
Floats = npt.NDArray[np.float64]


class Published(NamedTuple):
    """A row of the published table: seconds but for the user's milliseconds; F1 of DCA, private and numpy's."""

    file: str
    components: int
    pca: tuple[float, float, float, float]
    dca: tuple[float, float, float, float]
    f1: tuple[float, float]


TABLE = {
    "diabetes": Published("libsvm_diabetes_scale.csv", 7, (0.63, 10, 0.67, 13.8), (0.7, 12, 0.8, 4.0), (76.5, 76.4)),
    "breast cancer": Published("libsvm_breast_cancer_scale.csv", 8, (0.93, 11, 1.0, 20.7), (1.2, 13, 1.3, 5.8), (96.9, 96.8)),
    "australian": Published("libsvm_australian_scale.csv", 8, (1.7, 12, 1.8, 37.4), (2.1, 15, 2.2, 12.1), (86.1, 85.5)),
    "german": Published("libsvm_german_numer_scale.csv", 15, (5.0, 17, 5.0, 196.8), (5.6, 22, 5.8, 46.6), (72.7, 73.8)),
    "ionosphere": Published("ionosphere.csv", 15, (9.8, 24, 9.9, 386.4), (11.2, 29, 11.6, 114), (84.3, 83.4)),
    "SensIT's shape": Published("", 15, (22.5, 40, 22.7, 828), (26.2, 48, 26.9, 402), (67.8, 68.4)),
}


class Rows(NamedTuple):
    """Rows within [−1, 1], their classes from 0, and which are learned from."""

    values: Floats
    labels: npt.NDArray[np.int64]
    known: npt.NDArray[np.bool_]

    @property
    def train(self) -> tuple[Floats, npt.NDArray[np.int64]]:
        """What owners have."""
        return self.values[self.known], self.labels[self.known]


@cache
def rows_of(name: str) -> Rows:
    """Of a data set, or drawn in its shape: seven tenths are learned from."""
    generator = np.random.default_rng(0)
    if TABLE[name].file:
        told = np.genfromtxt(DATA / TABLE[name].file, delimiter=",", skip_header=1, dtype=str)
        places = (0, slice(1, None)) if TABLE[name].file.startswith("libsvm") else (-1, slice(None, -1))
        labels, values = np.unique(told[:, places[0]], return_inverse=True)[1], told[:, places[1]].astype(float)
    else:
        labels = generator.integers(0, 3, 20_000)
        axes = np.linalg.qr(generator.normal(size=(50, 50)))[0]
        angles = 2 * np.pi * labels[:, None] / 3
        apart = 0.12 * (np.cos(angles) * axes[4] + np.sin(angles) * axes[9])
        drawn = generator.normal(size=(len(labels), 50)) * 0.3 / np.arange(1, 51) ** 0.7
        values = np.clip(drawn @ axes + apart, -1, 1)
    known = generator.permutation(len(values)) < len(values) * 7 // 10
    return Rows(values, labels.astype(np.int64), known)


def moments_of(name: str, *, discriminants: bool) -> Moments:
    """In steps of 2^-16: in those of 2^-12, rounding turns 15 of 50 components by a sine of 2.5e-4, and the circuit by none."""
    rows, labels = rows_of(name).train
    classes = int(labels.max()) + 1 if discriminants else 0
    return Moments(features=rows.shape[1], rows=len(rows), classes=classes, fraction=FRACTION)


def parties(name: str, *, discriminants: bool, keys: Paillier) -> tuple[ExactPlan, dict[str, SigningKey], AgreementKey]:
    """A plan of ten owners."""
    rows, _ = rows_of(name).train
    signing = {each: SigningKey.generate() for each in (*(f"owner {place}" for place in range(OWNERS)), "user")}
    signing["provider"] = PROVIDER
    seal, side = AgreementKey.generate(), rows.shape[1]
    plan = ExactPlan(
        owners={each: signing[each].public for each in signing if each.startswith("owner")},
        user=signing["user"].public,
        provider=signing["provider"].public,
        seal=seal.public,
        key=keys.public,
        proof=keys.prove(),
        moments=moments_of(name, discriminants=discriminants),
        low=(-1.0,) * side,
        high=(1.0,) * side,
        components=0 if discriminants else TABLE[name].components,
    )
    return plan, signing, seal


def arithmetic(name: str) -> None:
    """An owner, the user and the key holder, by the length of the key."""
    rows, labels = rows_of(name).train
    for discriminants in (False, True):
        how = moments_of(name, discriminants=discriminants)
        numbers = how.of_rows(rows[::OWNERS], -1, 1, labels[::OWNERS] if discriminants else None)
        theirs, said = (TABLE[name].dca if discriminants else TABLE[name].pca), []
        for bits in (2048,) if QUICK else (1024, 2048, 3072):
            owner, adding, opening = of_key(bits, how, numbers)
            each = f"owner {owner * 1e3:.0f} ms, user {adding * 1e3:.1f} ms, key holder {opening * 1e3:.0f} ms"
            said.append(f"{bits:,} bits: {each}")
            if bits == 2048:
                counted = owner
        told = f"published at 1,024: owner {theirs[0]:g} s, user {theirs[1]:g} ms, key holder {theirs[2]:g} s"
        kind = "DCA" if discriminants else "PCA"
        report(
            f"Key holder, {name}, {kind}, times as quick an owner",
            ratio=theirs[0] / counted,
            limit=10,
            detail="; ".join([*said, told]),
        )


def of_key(bits: int, how: Moments, numbers: npt.NDArray[np.object_]) -> tuple[float, float, float]:
    """Seconds of an owner, of the user, of the key holder."""
    keys, slots = keys_of(bits), how.slots(OWNERS)
    owner = best(lambda: keys.public.encrypt(numbers, slots=slots), 3)
    one = keys.public.encrypt(numbers, slots=slots)
    total = one
    for _ in range(OWNERS - 1):
        total = total + one
    adding = (OWNERS - 1) * best(lambda: one + one, 3) + best(lambda: total.blinded(), 3)
    hidden, _ = total.blinded()
    return owner, adding, best(lambda: keys.decrypt(hidden, exact=True), 3)


@cache
def keys_of(bits: int) -> Paillier:
    """One pair of keys a length."""
    return Paillier.generate(bits, insecure=bits < 2048)


class Counting:
    """A transport that counts what comes."""

    def __init__(self, inner: SocketTransport) -> None:
        self.inner, self.received = inner, 0

    def send(self, message: bytes) -> None:
        """Passes one on."""
        self.inner.send(message)

    def receive(self, most: int) -> bytes:
        """The next one."""
        message = self.inner.receive(most)
        self.received += len(message)
        return message


def run(name: str, *, discriminants: bool) -> Floats:
    """Ten owners, the user here, the key holder in another process: the columns."""
    plan, signing, seal = parties(name, discriminants=discriminants, keys=keys_of(2048))
    rows, labels = rows_of(name).train
    user = DataUser(plan, signing["user"], seal)
    for place, owner in enumerate(plan.owners):
        part = slice(place, None, OWNERS)
        sending = SendingOwner(plan, owner, signing[owner], told=lambda _: None)
        user.take(sending.message(rows[part], labels[part] if discriminants else None))
    program, blinded = plan.program, user.blinded()
    here, there = socket.socketpair()
    command = [sys.executable, __file__, "--garble", str(there.fileno())]
    told = {"plan": plan.text, "primes": keys_of(2048).primes, "message": blinded.hex()}
    with subprocess.Popen(command, pass_fds=[there.fileno()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        there.close()
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(json.dumps(told))
        child.stdin.close()
        transport = Counting(SocketTransport(here))
        assert child.stdout.readline() == "ready\n"  # it has counted the program, too
        clock, busy = time.perf_counter(), time.process_time()
        found = user.evaluate(transport, most=MOST)
        clock, busy = time.perf_counter() - clock, time.process_time() - busy
        garbling = float(child.stdout.readline())
    here.close()
    theirs = (TABLE[name].dca if discriminants else TABLE[name].pca)[3]
    kind, count = ("DCA", found.shape[1]) if discriminants else ("PCA", plan.components)
    both, load = garbling + busy, os.getloadavg()[0]
    detail = (
        f"{count} of {rows.shape[1]} columns: {both:.1f} s of processors ({garbling:.1f} s garbling), published {theirs:g} s; "
        f"{clock:.1f} s by the clock at load {load:.1f} on {os.cpu_count()} cores; {program.gates / 1e6:.1f} M ANDs in "
        f"{program.levels:,} levels, {transport.received / 1e6:,.0f} MB streamed"
    )
    report(f"Key holder, {name}, {kind} circuit, times as quick as published", ratio=theirs / both, limit=1, detail=detail)
    compared(name, kind, found)
    return found


def garble(descriptor: int) -> None:
    """The key holder's process."""
    told = json.loads(sys.stdin.read())
    plan = ExactPlan.from_text(told["plan"])
    keys = Paillier(public=plan.key, primes=tuple(told["primes"]))
    provider = ServiceProvider(plan, keys, PROVIDER)
    assert plan.program.gates
    transport = SocketTransport(socket.socket(fileno=descriptor))
    print("ready", flush=True)
    busy = time.process_time()
    provider.garble(bytes.fromhex(told["message"]), transport, most=MOST)
    print(time.process_time() - busy, flush=True)


def compared(name: str, kind: str, found: Floats) -> None:
    """With numpy's: the largest angle between the subspaces, and a classifier on both."""
    from sklearn.metrics import f1_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    told = rows_of(name)
    rows, labels = told.train
    rows, labels = rows[:3000], labels[:3000]
    whole, classes = told.train
    trace = float(((whole - whole.mean(axis=0)) ** 2).sum())
    made = PCA(found.shape[1]) if kind == "PCA" else DCA(rho=trace / 64, rho_prime=0.0)
    exact = made.fit(whole, classes).components_
    ours, theirs = (np.linalg.qr(each)[0] for each in (found, exact.T))
    sine = float(np.linalg.norm(ours - theirs @ (theirs.T @ ours), 2))
    about = f"Key holder, {name}, {kind}"
    report(f"{about}, sine of the angle to numpy's", ratio=sine, limit=1e-4, detail="rows in steps of 2^-16", most=True)
    test, truth = told.values[~told.known][:3000], told.labels[~told.known][:3000]

    def f1(directions: Floats) -> float:
        model = make_pipeline(StandardScaler(), SVC(C=10)).fit(rows @ directions, labels)
        return 100 * float(f1_score(truth, model.predict(test @ directions), average="weighted"))

    mine, other = f1(found), f1(exact.T)
    detail = f"weighted F1 {mine:.1f} by the circuit's, {other:.1f} by numpy's, one split"
    if kind == "DCA":
        detail += " (published: {:g} and {:g})".format(*TABLE[name].f1)
    report(f"{about}, points of F1 from numpy's", ratio=abs(mine - other), limit=0.5, detail=detail, most=True)


def main() -> None:
    """Measure, print for people, print for programs."""
    for name in ONLY or (["diabetes"] if QUICK else TABLE):
        name = name.replace("_", " ")
        if TABLE[name].file and not DATA.exists():
            print(f"no rows of {name}: set CLOISTER_DATA to the folder that holds uci")
            continue
        arithmetic(name)
        for discriminants in (True, False):
            run(name, discriminants=discriminants)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--garble"]:
        garble(int(sys.argv[2]))
    else:
        main()
