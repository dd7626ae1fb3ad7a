"""Whose rows a key holder takes: those of the owners that it was told of, whatever a stranger or a hub names."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import cloister as cl
from cloister.crypto import AgreementKey, SigningKey, WrongKey, canonical_json, seal
from cloister.together import Journal, KeyHolder, KeyHolderAgent, KeyHolderLine, Sealer
from cloister.together.sealed.batches import KEY_BYTES, MAGIC, Batch, Head, headed
from cloister.together.sealed.renewing import apply_difference, renewed
from tests.together.parties import HUB_KEY
from tests.together.sealed.cells import AGES, OWNER, holder_of
from tests.together.wired import running

ROWS = {"age": [20, 30, 40], "sex": ["F", "F", "M"]}
STRANGER = SigningKey(b"s" * 32)
KNOWN = {"patients": [OWNER.public], "staff": [STRANGER.public]}
STAFF = replace(AGES, population="staff")


def told_holder(**other: object) -> KeyHolder:
    """Two owners, each with people of their own."""
    return holder_of(owners=KNOWN, **other)


def head_of(folder: Path, holder: KeyHolder, owner: SigningKey | None, form: object = AGES) -> Head:
    return Batch(Sealer(form, holder.public, owner=owner).seal(ROWS, folder / "batch.masked")).head  # type: ignore[arg-type]


def again(head: Head, holder: KeyHolder, change: Callable[[dict[str, object]], object], key: bytes) -> bytes:
    """What a hub makes of a batch that it has: another header, about which a key of its own is sealed."""
    told = json.loads(head.about[len(MAGIC) + 4 :])
    change(told)
    header = canonical_json(told).encode()
    about = MAGIC + len(header).to_bytes(4, "big") + header
    return about + seal(holder.public[KEY_BYTES:], key, about)


def test_a_strangers_rows_charge_nobody_whatever_people_they_name(tmp_path: Path) -> None:
    """Unsigned, signed by a stranger, and signed by the owner of other people: nothing is kept, and no question is charged."""
    holder = told_holder()
    for owner in (None, SigningKey(b"x" * 32), STRANGER):
        with pytest.raises(cl.AccessDenied, match="no owner of the people 'patients'"):
            holder.accept(head_of(tmp_path, holder, owner).data)
        with (
            pytest.raises(cl.AccessDenied, match="no owner of the people 'patients'"),
            cl.Session({"people": cl.SealedTable(tmp_path, holder)}, budget=cl.PureDP(9)) as session,
        ):
            session.sql("SELECT COUNT(*) AS n FROM people", spend=1)
    assert not holder.batches()
    assert not holder.ledger.charges("patients")
    assert holder.accept(head_of(tmp_path, holder, OWNER).data)


def test_a_hub_that_has_the_owners_batch_makes_no_other_of_it(tmp_path: Path) -> None:
    """Its header before another key, with another signer, for another key holder: the owner signed none of these."""
    holder, own = told_holder(), b"k" * 32
    head = head_of(tmp_path, holder, OWNER)
    for change in (
        lambda told: None,
        lambda told: told.update({"key": headed(AGES, 8, holder.public[KEY_BYTES:], own, {}, STRANGER)._told["key"]}),
        lambda told: told.update({"signed by": STRANGER.public.hex()}),
        lambda told: told.update({"rows": 16}),
        lambda told: told.pop("signature"),
        lambda told: told.update({"signature": [7]}),
        lambda told: told.update({"signed by": "zz"}),
    ):
        with pytest.raises(cl.AccessDenied, match="no owner"):
            holder.accept(again(head, holder, change, own))
    with pytest.raises(WrongKey):
        holder.accept(head.data.replace(OWNER.public.hex().encode(), STRANGER.public.hex().encode()))
    elsewhere = told_holder()
    passed_on = head.about + seal(elsewhere.public[KEY_BYTES:], holder.key_of(head), head.about)
    with pytest.raises(cl.AccessDenied, match="no owner"):  # by a key holder that opened the batch
        elsewhere.accept(passed_on)
    assert not holder.batches()
    assert not elsewhere.batches()


def test_an_owner_of_the_same_people_follows_and_withdraws_no_rows_of_another(tmp_path: Path) -> None:
    holder = holder_of(owners={"patients": [OWNER.public, STRANGER.public]})
    first, _ = Sealer(AGES, holder.public, owner=OWNER).add(ROWS, tmp_path / "first.masked")
    holder.accept(first.data)
    about = {"after": first.id, "withdrawn": {first.id: ((0, 8),)}}
    hostile, _ = Sealer(AGES, holder.public, owner=STRANGER).add(ROWS, tmp_path / "hostile.masked", **about)  # type: ignore[arg-type]
    named = {"after": first.id, "withdrawn": {first.id: [[0, 8]]}, "owner": OWNER.public.hex()}
    for each in (hostile, headed(AGES, 8, holder.public[KEY_BYTES:], b"k" * 32, named, STRANGER)):
        with pytest.raises(cl.AccessDenied, match="follows batches of another owner"):
            holder.accept(each.data)
    assert holder.gone(first.id) == ()
    second, _ = Sealer(AGES, holder.public, owner=OWNER).add(ROWS, tmp_path / "second.masked", after=first.id)
    assert holder.accept(second.data) == second.id


def test_what_was_accepted_stays_and_a_key_that_was_taken_off_brings_nothing_more(tmp_path: Path) -> None:
    """Batches of before owners had keys, too; whoever has the new key goes on from where the old one was."""
    how = {"key": bytes(32), "journal": Journal(tmp_path / "journal")}
    before = holder_of(**how)
    first, _ = Sealer(AGES, before.public).add(ROWS, tmp_path / "first.masked")
    before.accept(first.data)
    holder = holder_of(owners=KNOWN, **how)
    assert holder.accept(first.data) == first.id
    second, _ = Sealer(AGES, holder.public, owner=OWNER).add(ROWS, tmp_path / "second.masked", after=first.id)
    holder.accept(second.data)
    changed = holder_of(owners={"patients": [STRANGER.public]}, **how)
    assert changed.accept(second.data) == second.id
    for owner, fits in ((OWNER, False), (STRANGER, True)):
        third, _ = Sealer(AGES, holder.public, owner=owner).add(ROWS, tmp_path / "third.masked", after=second.id)
        if fits:
            assert changed.accept(third.data) == third.id
        else:
            with pytest.raises(cl.AccessDenied, match="no owner"):
                changed.accept(third.data)


def test_who_renews_signs_for_the_owner_and_the_owner_goes_on(tmp_path: Path) -> None:
    old = told_holder()
    new = KeyHolder("new", budgets={"patients": cl.PureDP(1)}, owners={"patients": [OWNER.public, old.signing.public]})
    first, _ = Sealer(AGES, old.public, owner=OWNER).add(ROWS, tmp_path / "first.masked")
    second, _ = Sealer(AGES, old.public, owner=OWNER).add(ROWS, tmp_path / "second.masked", after=first.id)
    for each in (first, second):
        old.accept(each.data)
    heads = [
        apply_difference(tmp_path / f"{name}.masked", difference, tmp_path / f"{name}.renewed")
        for name, difference in zip(("first", "second"), renewed(old, new.public, tmp_path / "differences"), strict=True)
    ]
    for head in heads:
        assert (head.owner, head.signer) == (OWNER.public.hex(), old.signing.public.hex())
        new.accept(head.data)
    third, _ = Sealer(AGES, new.public, owner=OWNER).add(ROWS, tmp_path / "third.masked", after=heads[-1].id)
    assert new.accept(third.data) == third.id
    unknown = holder_of(owners=KNOWN)
    with pytest.raises(cl.AccessDenied, match="no owner"):
        unknown.accept(
            apply_difference(tmp_path / "first.masked", renewed(old, unknown.public, tmp_path / "more")[0], tmp_path / "x").data
        )


def test_over_the_wire_a_hostile_hub_spends_nothing_of_the_victim(tmp_path: Path) -> None:
    """The hub asks about rows of its own that name the victim's people: refused before either ledger has a charge."""
    holder = told_holder(name="keys")
    line = KeyHolderLine(HUB_KEY, "keys", holder.public, deadline=240.0, wait=0.3)
    Sealer(AGES, holder.public, owner=HUB_KEY).seal(ROWS, tmp_path / "own.masked")
    agents = [KeyHolderAgent(holder, HUB_KEY.public)]
    table = cl.SealedTable(tmp_path, line)
    with line.serving() as hub, running(agents, hub), cl.Session({"people": table}, budget=cl.PureDP(9)) as session:  # type: ignore[arg-type]
        with pytest.raises(cl.AccessDenied, match="no owner of the people 'patients'"):
            session.sql("SELECT COUNT(*) AS n FROM people", spend=1)
        assert session.spent == cl.PureDP(0)
    assert not holder.ledger.charges("patients")


def test_a_key_holder_that_a_hub_calls_is_told_of_owners() -> None:
    with pytest.raises(cl.InvalidDeclaration, match="has no owners"):
        KeyHolderAgent(holder_of(), AgreementKey.generate().public)
