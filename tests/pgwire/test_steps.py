"""Steps of FETCH and MOVE against a cursor that is walked row by row."""

from __future__ import annotations

import pytest

from cloister.pgwire.statements import ALL, Passed, Step


def walked(step: Step, size: int, at: int) -> tuple[list[int], int]:
    """The same step, one row at a time, as PostgreSQL's executor goes."""

    def moved(by: int, rows: list[int]) -> None:
        nonlocal at
        at = min(max(at + by, 0), size + 1)
        if 1 <= at <= size:
            rows.append(at)

    rows: list[int] = []
    if step.way == "forward":
        if step.count == 0:
            return ([at] if 1 <= at <= size else []), at
        left = min(abs(step.count), size + 2)
        while left and not (at == size + 1 and step.count > 0) and not (at == 0 and step.count < 0):
            moved(1 if step.count > 0 else -1, rows)
            left -= 1
        return rows, at
    if step.way == "absolute":
        at = 0 if step.count >= 0 else size + 1
    last: list[int] = [at] if step.way == "relative" and step.count == 0 and 1 <= at <= size else []
    for _ in range(min(abs(step.count), size + 2)):
        last = []
        moved(1 if step.count > 0 else -1, last)
    return last, at


@pytest.mark.parametrize("size", [0, 1, 2, 5])
def test_every_step_from_every_place(size: int) -> None:
    for way in ("forward", "absolute", "relative"):
        for count in (-ALL, -7, -3, -2, -1, 0, 1, 2, 3, 7, ALL):
            for at in range(size + 2):
                step = Step(way, count)  # type: ignore[arg-type]
                found = step.over(size, at)
                assert (list(found.rows), found.at) == walked(step, size, at), (step, size, at)


def test_what_is_ahead_passes_no_row_twice() -> None:
    for way in ("forward", "absolute", "relative"):
        for count in range(-4, 5):
            for at in range(5):
                step = Step(way, count)  # type: ignore[arg-type]
                found = step.over(3, at)
                if step.ahead(3, at):
                    assert found.at >= at
                    assert all(row > at for row in found.rows)
                else:
                    assert found.at < at or at in found.rows or found.at == at


def test_the_rows_come_in_the_order_of_the_step() -> None:
    assert Step("forward", -2).over(5, 4) == Passed(range(3, 1, -1), 2)
