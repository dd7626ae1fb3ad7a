"""Owners send once, a user adds and evaluates, a provider decrypts blinds and garbles: three processes over TLS."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cloister import compress
from cloister.crypto import AgreementKey, SigningKey
from cloister.crypto.paillier import EncryptedVector
from cloister.crypto.tls import client_context
from cloister.errors import InvalidParameter
from cloister.together import Paillier
from cloister.together.circuits import Moments, QueueTransport, SocketTransport
from cloister.together.messages import RoundRefused, opened, pack
from cloister.together.service_provider import DataUser, ExactPlan, SendingOwner, ServiceProvider
from tests.certificates import certificate

NAMES = ("north", "south", "west")
SIGNING = {name: SigningKey(name.encode().ljust(32)) for name in (*NAMES, "user", "provider")}
SEAL = AgreementKey(b"seal".ljust(32))


@pytest.fixture(scope="module")
def keys() -> Paillier:
    return Paillier.generate()


def plan_of(keys: Paillier, **more: Any) -> ExactPlan:
    plan = ExactPlan(
        owners={name: SIGNING[name].public for name in NAMES},
        user=SIGNING["user"].public,
        provider=SIGNING["provider"].public,
        seal=SEAL.public,
        key=keys.public,
        proof=keys.prove(),
        moments=Moments(features=3, rows=1000, classes=2),
        low=(-1.0,) * 3,
        high=(1.0,) * 3,
    )
    return replace(plan, **more)


def rows_of(name: str) -> tuple[Any, Any]:
    """North has class 0 alone, south class 1 alone, west both."""
    generator = np.random.default_rng(NAMES.index(name))
    labels = {"north": np.zeros(100, int), "south": np.ones(150, int), "west": np.arange(100) % 2}[name]
    rows = generator.uniform(-0.4, 0.4, (len(labels), 3)) * [1, 0.5, 0.2] + np.outer(labels, [0.3, 0.3, 0.05])
    return np.rint(rows * 4096) / 4096, labels


def sent_by(plan: ExactPlan, name: str, told: Any = lambda _: None) -> bytes:
    rows, labels = rows_of(name)
    return SendingOwner(plan, name, SIGNING[name], told=told).message(rows, labels if plan.moments.classes else None)


def rows_of_all() -> Any:
    return np.concatenate([rows_of(name)[0] for name in NAMES])


def expected() -> Any:
    rows, labels = (np.concatenate(parts) for parts in zip(*map(rows_of, NAMES), strict=True))
    total = np.trace((rows - rows.mean(axis=0)).T @ (rows - rows.mean(axis=0)))
    return compress.DCA(rho=total / 64, rho_prime=0.0).fit(rows, labels).components_[0]


OWNER = """
import sys, numpy as np
sys.path.insert(0, ".")
from tests.together.test_service_provider import *
plan = ExactPlan.from_text(sys.stdin.read())
for name in NAMES:
    print(sent_by(plan, name).hex())
"""
PROVIDER = """
import json, sys
sys.path.insert(0, ".")
from tests.together.test_service_provider import *
from cloister.crypto.tls import server_context
told = json.loads(sys.stdin.read())
plan = ExactPlan.from_text(told["plan"])
keys = Paillier(public=plan.key, primes=tuple(told["primes"]))
plain = socket.socket(fileno=int(sys.argv[1]))
connection = server_context(told["certificate"], told["key"]).wrap_socket(plain, server_side=True)
transport = SocketTransport(connection)
ServiceProvider(plan, keys, SIGNING["provider"]).garble(transport.receive(1 << 20), transport)
"""


@pytest.mark.parametrize("components", [0, 1], ids=["discriminants", "components"])
def test_three_processes_over_tls(keys: Paillier, tmp_path: Path, components: int) -> None:
    """Owners, the provider and the user (this process) share bytes alone; the columns are those of all rows in the clear, and
    owners get them signed."""
    how = {"moments": Moments(features=3, rows=1000), "components": components} if components else {}
    plan = plan_of(keys, **how)
    user = DataUser(plan, SIGNING["user"], SEAL)
    lines = subprocess.run(
        [sys.executable, "-c", OWNER], input=plan.text, capture_output=True, text=True, check=True, timeout=600
    )
    assert [user.take(bytes.fromhex(line)) for line in lines.stdout.split()] == list(NAMES)
    key, public = certificate(tmp_path / "tls", "provider")
    one, other = socket.socketpair()
    told = {"plan": plan.text, "primes": list(keys.primes), "certificate": str(public), "key": str(key)}
    command = [sys.executable, "-c", PROVIDER, str(other.fileno())]
    with subprocess.Popen(command, pass_fds=[other.fileno()], stdin=subprocess.PIPE, text=True, env=os.environ) as child:
        other.close()
        assert child.stdin is not None
        child.stdin.write(json.dumps(told))
        child.stdin.close()
        connection = client_context(public).wrap_socket(one, server_hostname="provider")
        transport = SocketTransport(connection)
        transport.send(user.blinded())
        found = user.evaluate(transport)
        assert child.wait(timeout=600) == 0
    connection.close()
    exact = compress.PCA(components).fit(rows_of_all()).components_ if components else expected()[None]
    np.testing.assert_allclose(np.abs((found.T * exact).sum(axis=1)), 1, atol=1e-6)
    message = user.signed(found)
    agreed = ExactPlan.from_text(plan.text)
    np.testing.assert_array_equal(agreed.columns_in(message), found)
    projected = agreed.project(rows_of("west")[0], found)
    np.testing.assert_allclose(np.abs(projected), np.abs(rows_of("west")[0] @ exact.T), atol=1e-5)
    forged = (
        pack("columns", plan.id, "user", SIGNING["north"], found.tobytes()),
        pack("columns", replace(plan, low=(-2.0,) * 3).id, "user", SIGNING["user"], found.tobytes()),
        pack("columns", plan.id, "user", SIGNING["user"], found.tobytes()[:-8]),
        pack("columns", plan.id, "user", SIGNING["user"], np.full(found.shape, np.nan).tobytes()),
        message[:-1],
    )
    for each in forged:
        with pytest.raises(RoundRefused):
            agreed.columns_in(each)


def test_owners_are_told_first_and_messages_show_nothing(keys: Paillier) -> None:
    """The seal keeps a message from the provider; who lacks a class sends as many bytes as who has it."""
    plan, told = plan_of(keys), list[str]()
    north, west = (sent_by(plan, name, told.append) for name in ("north", "west"))
    assert "not differentially private" in told[0]
    assert abs(len(north) - len(west)) < 16  # a leading nought of a ciphertext, a name
    thief = DataUser(
        replace(plan, seal=AgreementKey(b"other".ljust(32)).public), SIGNING["user"], AgreementKey(b"other".ljust(32))
    )
    with pytest.raises(RoundRefused, match="another round"):
        thief.take(north)

    def no(_: str) -> None:
        raise PermissionError

    with pytest.raises(PermissionError):
        SendingOwner(plan, "north", SIGNING["north"], told=no).message(None)  # no row was read


def test_an_owner_sends_one_message_whatever_it_is_asked(keys: Paillier) -> None:
    """Encryptions of other rows would be another message, which the user refuses; what is no table has its own words."""
    told = list[str]()
    owner = SendingOwner(plan_of(keys), "north", SIGNING["north"], told=told.append)
    for wrong in ("x", [["x"]], [[0.0, 1.0]], None):
        with pytest.raises(InvalidParameter, match="finite numbers in 3 columns"):
            owner.message(wrong, [0])
    with pytest.raises(InvalidParameter, match="2 classes were declared"):
        owner.message([[0.0, 0.0, 0.0]], ["ill"])
    first = owner.message(*rows_of("north"))
    assert owner.message(*rows_of("south")) == first == owner.message("x")
    assert len(told) == 6  # each attempt was written down before a row was read


def test_a_circuit_that_is_too_large_uses_no_key_up(keys: Paillier) -> None:
    plan = plan_of(keys)
    user, provider = DataUser(plan, SIGNING["user"], SEAL), ServiceProvider(plan, keys, SIGNING["provider"])
    one, _ = QueueTransport.pair()
    with pytest.raises(InvalidParameter, match=r"The circuit is too large: .* MB to send, about"):
        user.evaluate(one, most=1000)
    with pytest.raises(InvalidParameter, match="too large"):
        provider.garble(b"", one, most=1000)
    assert provider.journal.of(plan.key.digest).names() == []


def test_malformed_replayed_and_foreign_messages_are_refused(keys: Paillier) -> None:
    plan = plan_of(keys)
    user, provider = DataUser(plan, SIGNING["user"], SEAL), ServiceProvider(plan, keys, SIGNING["provider"])
    first = sent_by(plan, "north")
    assert [user.take(first), user.take(first)] == ["north"] * 2
    with pytest.raises(RoundRefused, match="sent another before"):
        user.take(sent_by(plan, "north"))
    with pytest.raises(RoundRefused, match="2 owners have not sent"):
        user.blinded()
    second = sent_by(plan, "south")
    for wrong in (
        second[:-1],
        second[:200] + b"x" + second[201:],
        b"",
        pack("moments", plan.id, "south", SIGNING["south"], b"x"),
    ):
        with pytest.raises(RoundRefused):
            user.take(wrong)
    for each in (second, sent_by(plan, "west")):
        user.take(each)
    blinded = user.blinded()
    one, other = QueueTransport.pair()
    for wrong in (blinded[:-1], first, pack("blinded", plan.id, "user", SIGNING["user"], b"{}")):
        with pytest.raises(RoundRefused):
            provider.garble(wrong, one)
    thread = threading.Thread(target=provider.garble, args=(blinded, one), daemon=True)
    thread.start()
    found = user.evaluate(other)
    thread.join()
    assert found.shape == (3, 1)
    again = ServiceProvider(plan, keys, SIGNING["provider"], journal=provider.journal)
    for each in (provider, again):
        with pytest.raises(RoundRefused, match="was garbled"):
            each.garble(blinded, one)


def test_what_the_provider_decrypts_is_blinds(keys: Paillier) -> None:
    """Of the same messages two users' blinded sums have nothing in common but the sum of what each knows alone."""
    plan, seen = plan_of(keys), []
    messages = [sent_by(plan, name) for name in NAMES]
    for _ in range(2):
        user = DataUser(plan, SIGNING["user"], SEAL)
        for each in messages:
            user.take(each)
        user.blinded()
        assert user._asked is not None
        vector = EncryptedVector.from_json(opened(user.blinded()).body.decode(), plan.key)
        decrypted = keys.decrypt(vector, exact=True)
        assert all(abs(int(each)) > 2**40 for each in decrypted)
        seen.append((decrypted, decrypted - user._asked[1]))
    assert not set(seen[0][0]) & set(seen[1][0])
    assert (seen[0][1] == seen[1][1]).all()


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"components": 1}, "discriminants"),
        ({"moments": Moments(features=3, rows=9), "components": 3}, "fewer components"),
        ({"low": (0.0, 0.0, 1.0)}, "a low below a high"),
        ({"user": SIGNING["north"].public}, "a key for each party"),
    ],
)
def test_plans_that_mean_nothing(keys: Paillier, more: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidParameter, match=why):
        plan_of(keys, **more)
    with pytest.raises(InvalidParameter, match="no text of a plan"):
        ExactPlan.from_text("{}")
    with pytest.raises(InvalidParameter, match="another key for it"):
        SendingOwner(plan_of(keys), "north", SIGNING["south"], told=print)
