"""Principal components through a proxy, under keys of 2,048 bits, against what was published for the same with keys of 128.

Encrypting, adding and decrypting are processor seconds: encrypting of all owners together, the making of a key's table of powers
once an owner left out. Run time is as it was published: the mean owner, and then the proxy and the user, over real sockets
(127.0.0.1), with what an owner does once in it (checking the key, its table). Beside it the peer: PrivateLocalPCA, a chain in
which each owner adds its noisy moments to the factor that it was handed and hands on the leading part, so that owners wait for
one another. A network's delays are not in it, of which a chain has one an owner.

What was captured, and F1 of a support vector machine on the coordinates, need no keys: the same noise is added to the same
moments. CNAE and ISOLET are read from the folder that CLOISTER_DATA names; rows of Aloi's shape (29 columns, ten classes here)
are drawn.
"""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from _clock import best
from _report import report

import cloister as cl
from cloister.crypto import AgreementKey, SigningKey
from cloister.learn import PCA
from cloister.privacy import ApproxDP, zcdp_within
from cloister.together import DistributedPCA, JointTable, Paillier, Site
from cloister.together.noisy_moments import MomentNoise, NoisyMoments, moments_of
from cloister.together.proxy import Proxy, ProxyOwner, ProxyPlan, read_total

QUICK = bool(os.environ.get("CLOISTER_BENCH_QUICK"))
DATA = Path(os.environ.get("CLOISTER_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")) / "uci"
RUNS = 2 if QUICK else 10
DELTA = Fraction(1, 10**9)
PUBLISHED = {  # columns, owners: ms of encrypting, adding, decrypting
    ("diabetes", 8, 10): (67, 31, 7),
    ("diabetes", 8, 190): (1055, 87, 11),
    ("australian", 14, 10): (184, 30, 18),
    ("german", 24, 190): (8866, 225, 55),
    ("madelon", 500, 10): (214_000, 2_500, 22_000),
}
Floats = npt.NDArray[np.float64]


class Parties:
    """Keys and a plan for so many owners."""

    def __init__(self, keys: Paillier, features: int, owners: int, epsilon: Fraction = Fraction(3, 10)) -> None:
        self.keys, self.own, self.seal = keys, SigningKey.generate(), AgreementKey.generate()
        self.signing = {f"owner {place}": SigningKey.generate() for place in range(owners)}
        self.plan = ProxyPlan(
            owners={name: key.public for name, key in self.signing.items()},
            proxy=self.own.public,
            seal=self.seal.public,
            key=keys.public,
            proof=keys.prove(),
            low=(-1.0,) * features,
            high=(1.0,) * features,
            radius=1.0,
            epsilon=epsilon,
            delta=DELTA,
        )

    def owner(self, name: str, plan: ProxyPlan | None = None) -> ProxyOwner:
        """One of them."""
        return ProxyOwner(plan or self.plan, name, self.signing[name])


def arithmetic(keys: Paillier) -> None:
    """Encrypting, adding and decrypting, each published row."""
    for (name, features, owners), published in PUBLISHED.items():
        if QUICK and features > 100:
            continue
        plan = Parties(keys, features, owners).plan
        values = plan.noise.sample(None)
        times = 1 if features > 100 else 5
        encrypted = plan.key.encrypt(values, slots=plan.slots)
        encrypting = owners * best(lambda plan=plan, values=values: plan.key.encrypt(values, slots=plan.slots), times)
        adding = (owners - 1) * best(lambda one=encrypted: one + one, times)
        decrypting = best(lambda one=encrypted: keys.decrypt(one, exact=True), times)
        for what, taken, theirs in zip(
            ("encrypting", "adding", "decrypting"), (encrypting, adding, decrypting), published, strict=True
        ):
            detail = (
                f"{features} columns, {owners} owners: {taken * 1e3:,.1f} ms under 2,048 bits, published {theirs:,} ms under 128"
            )
            report(f"Distributed PCA, {name}, {owners} owners, {what}", ratio=theirs / taken / 1e3, limit=1, detail=detail)


def sent(connection: socket.socket, data: bytes) -> None:
    """A message, its length first."""
    connection.sendall(struct.pack(">I", len(data)) + data)


def received(connection: socket.socket) -> bytes:
    """A whole message."""

    def exactly(size: int) -> bytes:
        parts = []
        while size:
            parts.append(connection.recv(min(size, 1 << 20)))
            size -= len(parts[-1])
        return b"".join(parts)

    return exactly(struct.unpack(">I", exactly(4))[0])


def through_the_proxy(parties: Parties, rows: Floats) -> float:
    """Seconds: the mean owner, then everything from the first byte to the components. Owners send at once."""
    plan, own = parties.plan, []
    text, messages = plan.text, []
    for place, name in enumerate(parties.signing):
        started = time.process_time()
        at_owner = (
            ProxyPlan.from_text(text) if place < 3 else plan
        )  # three owners start afresh, the others are paid by their mean
        messages.append(parties.owner(name, at_owner).message(rows))
        own += [time.process_time() - started] if place < 3 else []
    with (
        socket.create_server(("127.0.0.1", 0), backlog=len(messages)) as listening,
        socket.create_server(("127.0.0.1", 0)) as user,
    ):
        found: list[Any] = []

        def proxy() -> None:
            adding = Proxy(plan, parties.own, parties.seal)
            for _ in messages:
                connection, _ = listening.accept()
                with connection:
                    adding.take(received(connection))
            with socket.create_connection(user.getsockname()) as connection:
                sent(connection, adding.total())

        def reader() -> None:
            connection, _ = user.accept()
            with connection:
                found.append(DistributedPCA(2).fit_moments(read_total(plan, parties.keys, received(connection))))

        threads = [threading.Thread(target=each) for each in (proxy, reader)]
        started = time.process_time()
        for each in threads:
            each.start()
        for message in messages:
            with socket.create_connection(listening.getsockname()) as connection:
                sent(connection, message)
        for each in threads:
            each.join()
        return float(np.mean(own)) + time.process_time() - started


def local_step(handed: Floats, rows: Floats, noise: MomentNoise, keep: int) -> Floats:
    """PrivateLocalPCA: what an owner hands on, a factor of its noisy second moments and of what it was handed."""
    steps = moments_of(rows, -np.ones(noise.features), np.ones(noise.features), 1.0) + noise.sample(None)
    moments = NoisyMoments.of_steps(
        steps, noise, low=-np.ones(noise.features), high=np.ones(noise.features), radius=1.0, owners=1, guarantee=None
    )
    values, vectors = np.linalg.eigh(moments.scatter + handed.T @ handed)
    return np.asarray((vectors[:, -keep:] * np.sqrt(np.clip(values[-keep:], 0, None))).T)


def handed_on(to: Any, what: bytes) -> None:
    """To the next owner."""
    with socket.create_connection(to) as connection:
        sent(connection, what)


def along_a_chain(rows: Floats, owners: int, keep: int) -> float:
    """Seconds of a chain of owners over real sockets: each waits for the one before."""
    noise = MomentNoise(features=rows.shape[1], rho=zcdp_within(epsilon=Fraction(3, 10), delta=DELTA).rho, honest=1)
    factor = np.zeros((keep, rows.shape[1]))
    started = time.process_time()
    for _ in range(owners):
        with socket.create_server(("127.0.0.1", 0)) as listening:
            sender = threading.Thread(target=handed_on, args=(listening.getsockname(), factor.tobytes()))
            sender.start()
            connection, _ = listening.accept()
            with connection:
                handed = np.frombuffer(received(connection)).reshape(keep, -1)
            sender.join()
        factor = local_step(handed, rows, noise, keep)
    return time.process_time() - started


def owners_grow(keys: Paillier) -> None:
    """Run time by the number of owners: 90 columns, 1,000 rows an owner, ε = 0.3."""
    rows, times = np.random.default_rng(1).uniform(-0.1, 0.1, (1000, 90)), {}
    for owners in (10, 190) if QUICK else (10, 55, 100, 145, 190):
        ours = min(through_the_proxy(Parties(keys, 90, owners), rows) for _ in range(1 if QUICK else 3))
        theirs = min(along_a_chain(rows, owners, 10) for _ in range(1 if QUICK else 3))
        times[owners] = (ours, theirs)
        print(f"  {owners} owners: {ours:.2f} s through the proxy, {theirs:.2f} s along the chain", flush=True)
    told = "; ".join(f"{owners} owners {ours:.2f} s and {theirs:.2f} s" for owners, (ours, theirs) in times.items())
    grown = times[190][0] / times[10][0]
    report(
        "Distributed PCA, run time with 190 owners over that with 10",
        ratio=grown,
        limit=9.5,
        detail=f"proxy and chain: {told}",
        most=True,
    )


# ── what is captured ──


def unit_rows(rows: Floats) -> Floats:
    """Scaled to length 1 at most, as the published tables have it: each row by itself."""
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def directions(rows: Floats, owners: int, epsilon: Any, delta: Fraction, count: int) -> Floats:
    """What the user learns, the noise being that of all owners' shares, one of them colluding."""
    d = rows.shape[1]
    if epsilon is None:
        return np.asarray(np.linalg.svd(rows - rows.mean(0), full_matrices=False)[2][:count])
    noise = MomentNoise(features=d, rho=zcdp_within(epsilon=epsilon, delta=delta).rho, honest=max(owners - 1, 1))
    end = np.ones(d)
    steps = moments_of(rows, -end, end, 1.0) + sum(noise.sample(None) for _ in range(owners))
    moments = NoisyMoments.of_steps(
        steps, noise, low=-end, high=end, radius=1.0, owners=owners, guarantee=ApproxDP(epsilon, delta)
    )
    return DistributedPCA(count).fit_moments(moments).components_


def captured(rows: Floats, components: Floats) -> float:
    """The share of the variance along the best so many directions that these have."""
    values = np.linalg.eigvalsh(np.cov(rows.T))[::-1]
    return float(np.var(rows @ components.T, axis=0, ddof=1).sum() / values[: len(components)].sum())


def f1(rows: Floats, labels: Any, test: Floats, test_labels: Any, components: Floats) -> float:
    """Weighted F1 of a support vector machine with a Gaussian kernel on the coordinates."""
    from sklearn.metrics import f1_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    model = make_pipeline(StandardScaler(), SVC(C=10)).fit(rows @ components.T, labels)
    return float(f1_score(test_labels, model.predict(test @ components.T), average="weighted"))


def at_random(features: int, count: int, seed: int) -> Floats:
    """Directions that know nothing of the rows."""
    return np.asarray(np.linalg.qr(np.random.default_rng(seed).normal(size=(features, count)))[0].T)


def table(name: str, file: str, count: int, owners: int = 10) -> None:
    """Captured share and F1 by ε, with random directions beside."""
    data = np.genfromtxt(DATA / file, delimiter=",", skip_header=1)
    labels, rows = data[:, 0].astype(int), unit_rows(data[:, 1:])
    order = np.random.default_rng(0).permutation(len(rows))
    half = len(rows) * 7 // 10
    train, test = order[:half], order[half:]

    def of(components: Floats) -> tuple[float, float]:
        return captured(rows[train], components), f1(rows[train], labels[train], rows[test], labels[test], components)

    runs = min(RUNS, 3)
    random = np.mean([of(at_random(rows.shape[1], count, seed)) for seed in range(runs)], axis=0)
    said = [f"random {random[0]:.2f}/{random[1]:.2f}"]
    for epsilon in (Fraction(1, 10), Fraction(1, 2), 1, 5, 10, None):
        found = np.mean(
            [
                of(directions(rows[train], owners, epsilon, Fraction(1, half), count))
                for _ in range(1 if epsilon is None else runs)
            ],
            axis=0,
        )
        said.append(f"{'no noise' if epsilon is None else f'ε {float(epsilon):g}'} {found[0]:.2f}/{found[1]:.2f}")
    print(f"  {name}, k = {count}: {'; '.join(said)}", flush=True)
    report(
        f"Distributed PCA, {name}, k = {count}, captured at ε = 10 over random",
        ratio=found_at(said, "ε 10") / float(random[0]),
        limit=2,
        detail="captured/F1: " + "; ".join(said),
    )


def found_at(said: list[str], start: str) -> float:
    """The captured share in a table's cell."""
    return float(next(each for each in said if each.startswith(start + " ")).rsplit(" ", 1)[1].split("/")[0])


def chained(parts: list[Floats], count: int) -> Floats:
    """What the last owner of a chain has: noise of its own at each owner, since each hands on in the clear."""
    features = parts[0].shape[1]
    noise = MomentNoise(features=features, rho=zcdp_within(epsilon=Fraction(1, 2), delta=DELTA).rho, honest=1)
    factor = np.zeros((2 * count, features))
    for part in parts:
        factor = local_step(factor, part, noise, 2 * count)
    return np.asarray(np.linalg.svd(factor, full_matrices=False)[2][:count])


def samples_grow() -> None:
    """F1 and captured share by rows an owner, ε = 0.5, ten owners, five components; rows drawn in the shape of Aloi."""
    generator = np.random.default_rng(3)
    centres = generator.normal(size=(10, 29)) * np.arange(1, 30) ** -0.7
    said, gained = [], 0.0
    for number in (50, 200, 1000, 5000):
        labels = generator.integers(0, 10, 10 * number + 2000)
        rows = centres[labels] + generator.normal(size=(len(labels), 29)) * 0.7 * np.arange(1, 30) ** -0.5
        rows = rows / 6
        test, train = slice(0, 1000), slice(1000, 3000)
        own = rows[2000:]
        found: dict[str, Any] = {}
        for name, components in (
            ("ours", [directions(own, 10, Fraction(1, 2), DELTA, 5) for _ in range(RUNS)]),
            ("chain", [chained(np.split(own, 10), 5) for _ in range(RUNS)]),
            ("random", [at_random(29, 5, seed) for seed in range(RUNS)]),
            ("no noise", [directions(own, 10, None, DELTA, 5)]),
        ):
            each = np.array([(captured(own, c), f1(rows[train], labels[train], rows[test], labels[test], c)) for c in components])
            found[name] = (*each.mean(axis=0), each[:, 1].std())
        said.append(f"{number} rows: " + ", ".join(f"{name} {a:.2f}/{b:.2f} ± {c:.2f}" for name, (a, b, c) in found.items()))
        gained = float(found["ours"][0])
        print("  " + said[-1], flush=True)
    report(
        "Distributed PCA, captured at ε = 0.5 with 5,000 rows an owner",
        ratio=gained,
        limit=0.9,
        detail="captured/F1: " + "; ".join(said),
    )


def beside_a_joint_table() -> None:
    """The same (ε, δ), rows and bounds: through the proxy, and by `PCA` over a joint table of the same sites."""
    generator, d, owners = np.random.default_rng(5), 8, 5
    rows = np.clip(generator.normal(size=(owners * 2000, d)) * np.arange(1, d + 1) ** -0.8 * 0.25, -1, 1)
    parts, names = np.split(rows, owners), [f"c{place}" for place in range(d)]
    columns = {name: cl.Real(-1, 1, step="0.0001") for name in names}
    shares: dict[str, list[float]] = {"proxy": [], "joint": []}
    seconds = {"proxy": 0.0, "joint": 0.0}
    keys = Paillier.generate()
    for _ in range(min(RUNS, 4)):
        started = time.process_time()
        model = DistributedPCA(2, epsilon=1, delta=DELTA, bounds=(-1, 1), keys=keys).fit(parts)
        seconds["proxy"] += time.process_time() - started
        shares["proxy"].append(captured(rows, model.components_))
        started = time.process_time()
        held = [
            Site(
                f"site {place}",
                cl.PrivateTable(dict(zip(names, part.T, strict=True)), columns=columns),
                budget=cl.ZCDP(1),
            )
            for place, part in enumerate(parts)
        ]
        with cl.Session(
            {"people": JointTable(held, columns, overlap="none", missing=1)}, budget=cl.ApproxDP(2, DELTA * 2)
        ) as session:
            other = PCA(2, epsilon=1, delta=DELTA).fit_table(session, "people", features=names)
        seconds["joint"] += time.process_time() - started
        shares["joint"].append(captured(rows, other.components_))
    count = len(shares["proxy"])
    told = ", ".join(f"{name}: captured {np.mean(shares[name]):.3f}, {seconds[name] / count:.1f} s" for name in shares)
    report(
        "Distributed PCA, captured through the proxy over a joint table's",
        ratio=float(np.mean(shares["proxy"]) / np.mean(shares["joint"])),
        limit=0.9,
        detail=f"{told} ({d} columns, {owners} owners of 2,000 rows, ε = 1)",
    )


def main() -> None:
    """Measure, print for people, print for programs."""
    keys = Paillier.generate()
    arithmetic(keys)
    owners_grow(keys)
    beside_a_joint_table()
    samples_grow()
    if not DATA.exists():
        print("no CNAE and no ISOLET: set CLOISTER_DATA to the folder that holds uci")
        return
    for name, file, count in (("CNAE", "cnae9.csv.gz", 10), ("CNAE", "cnae9.csv.gz", 50), ("ISOLET", "isolet_1560.csv.gz", 10)):
        table(name, file, count)


if __name__ == "__main__":
    main()
