"""New keys for batches that are there: what owners do not have to upload again after a key holder's key was copied.

The key holder that has the keys draws a new key k′ for each batch, seals it to the new key holder, and writes the *difference*
of the pads, F_k′ − F_k, cell by cell. The hub adds it: c + F_k′ − F_k = x + F_k′. Nobody sees x.

Claim: whoever has the old key k, and of the hub's files only those from after the change, learns nothing of x; whoever has the
new key k′ alone does neither. Sketch: x + F_k′ is uniform to someone without k′, and k′ is fresh. The difference is what must
not stay: with it k opens the new cells. It stands in no file of the hub once it was added, and travels as cells do, over TLS.
Who copied both, the old key and the hub's old cells, read everything: no new key undoes that. Of rows that were withdrawn
the difference is random: the new key holder can't open them, whatever a hub shows it. The new batches are signed by the key
holder that wrote them, for the owner of the old ones: the other one is told about its key as about an owner's.

A difference that is added twice, or to another batch, gives sums that mean nothing; the header says to which it belongs. Who
renews twice has two keys for the same rows: their beginning is the same, so no key holder puts both in one sum.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cloister.errors import InvalidDeclaration
from cloister.noise import default_random
from cloister.together.sealed.batches import KEY_BYTES, PAGE, Head, Ranges, headed, pads_of, pages_of
from cloister.together.sealed.holder import KeyHolder

MARK = b"cloister pad differences 1\n"
SUFFIX = ".difference"


def renewed(holder: KeyHolder, to: bytes, folder: str | Path) -> list[Path]:
    """Writes, for each batch of a key holder, the difference to new pads whose key is sealed to another key holder (64 bytes).
    From then on this key holder answers no new question about them.

    >>> from tempfile import TemporaryDirectory
    >>> renewed(KeyHolder("old"), KeyHolder("new").public, TemporaryDirectory().name)
    []
    """
    if len(to) != 2 * KEY_BYTES:
        raise InvalidDeclaration("The key holder's key is invalid", why="it has 64 bytes", instead="cloister csp show")
    names: dict[str, str] = {}
    written: list[Path] = []
    holder.retire()  # first: a renewal that is cut off is begun again, and in between nobody answers
    for old in holder.batches():
        key, declared, owner = default_random().bytes(KEY_BYTES), old.format, {"owner": old.owner} if old.owner else {}
        new = headed(declared, old.rows, to[KEY_BYTES:], key, {**old.following(names), **owner}, holder.signing)
        names[old.id] = new.id
        Path(folder).mkdir(parents=True, exist_ok=True)
        path = Path(folder) / f"{len(written):06d}{SUFFIX}"
        draft = path.with_suffix(".draft")
        with draft.open("wb") as file:
            file.write(MARK + bytes.fromhex(old.id) + len(new.data).to_bytes(4, "big") + new.data)
            for page in _differences(holder.key_of(old), key, old, holder.gone(old.id)):
                file.write(page.astype("<u8").tobytes())
        draft.replace(path)
        written.append(path)
    return written


def apply_difference(batch: str | Path, difference: str | Path, out: str | Path) -> Head:
    """The batch under its new key, as another file: the hub's side.

    >>> from tempfile import TemporaryDirectory
    >>> from cloister.tables import Integer
    >>> from cloister.together import Marginal, MaskedFormat, Sealer
    >>> form = MaskedFormat(columns={"age": Integer(17, 90)}, marginals=[Marginal(sums=["age"])], population="patients")
    >>> from cloister.privacy import PureDP
    >>> old, new = (KeyHolder(name, budgets={"patients": PureDP(1)}) for name in ("old", "new"))
    >>> with TemporaryDirectory() as folder:
    ...     batch = Sealer(form, old.public).seal({"age": [39, 51]}, f"{folder}/first.masked")
    ...     name = old.accept(Head.read(batch).data)
    ...     [difference] = renewed(old, new.public, f"{folder}/differences")
    ...     new.accept(apply_difference(batch, difference, f"{folder}/renewed.masked").data) == name
    False
    """
    old, start = Head.read(Path(batch)), len(MARK) + 36
    with Path(difference).open("rb") as file:
        about = file.read(start)
        new = Head(data=file.read(int.from_bytes(about[-4:], "big") if len(about) == start else 0))
    whole = about.startswith(MARK) and about[len(MARK) : -4] == bytes.fromhex(old.id)
    if not whole or (new.format.text, new.rows) != (old.format.text, old.rows):
        raise _invalid("it is not that of this batch")
    cells = old.rows * old.format.bytes_a_row // 8
    if Path(difference).stat().st_size != start + len(new.data) + 8 * cells:
        raise _invalid("it is not whole")
    draft = Path(out).with_name(f"{Path(out).name}.draft")
    with Path(batch).open("rb") as before, Path(difference).open("rb") as added, draft.open("wb") as file:
        before.seek(len(old.data))
        added.seek(start + len(new.data))
        file.write(new.data)
        for first in range(0, cells, 1 << 20):
            count = min(1 << 20, cells - first)
            parts = [np.frombuffer(each.read(8 * count), dtype="<u8").astype(np.uint64) for each in (before, added)]
            file.write((parts[0] + parts[1]).astype("<u8").tobytes())
    draft.replace(out)
    return new


def _differences(old: bytes, new: bytes, head: Head, gone: Ranges) -> Iterator[npt.NDArray[np.uint64]]:
    lost = pages_of(gone)
    for place, marginal in enumerate(head.format.marginals):
        for page in range(-(-head.rows // PAGE)):
            rows, numbers = min(PAGE, head.rows - page * PAGE), head.format.numbers(marginal)
            found = pads_of(new, place, page, rows, numbers) - pads_of(old, place, page, rows, numbers)
            for first, after in lost.get(page, ()):
                drawn = np.frombuffer(default_random().bytes(8 * (after - first) * numbers), dtype="<u8")
                found[first:after] = drawn.reshape(-1, numbers)
            yield found


def _invalid(why: str) -> InvalidDeclaration:
    return InvalidDeclaration("The difference is invalid", why=why, instead="the files of cloister csp renew, as they are")
