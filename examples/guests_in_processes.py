"""Two guests that need more than pure Python: a regression with mixed effects in numpy and scipy, and a script of R.

Native code meets the kernel of the machine, so it runs for someone who read it and names its digest, and behind walls:
bubblewrap, a list of system calls, a file system of its own, a process for each block.

python examples/guests_in_processes.py
"""

from __future__ import annotations

from typing import Any

import cloister as cl
from cloister.guests import admit
from cloister.guests.sandbox.processes import why_not
from cloister.noise import Random

PATIENTS, VISITS = 1200, 4


@cl.guest(
    inputs=["day", "pressure"],
    output=cl.Table(rows=["a day", "between people"], columns={"mmHg": (-2, 20)}),
    blocks=6,
    seconds=0.4,
    packages=["numpy", "scipy.optimize"],
)
def mixed(rows: dict[str, list[Any]]) -> list[list[float]]:
    """A slope for all and an intercept for each patient: maximum likelihood of a random-intercept model."""
    import numpy as np
    from scipy.optimize import minimize

    who, x, y = (np.array(rows[name], dtype=float) for name in ("patient", "day", "pressure"))
    people = [who == each for each in np.unique(who)]

    def cost(given: Any) -> float:
        base, slope, noise, between = given[0], given[1], np.exp(given[2]), np.exp(given[3])
        total = 0.0
        for here in people:
            rest, n = y[here] - base - slope * x[here], here.sum()
            whole = noise + n * between
            total += (n - 1) * np.log(noise) + np.log(whole) + (rest @ rest - between / whole * rest.sum() ** 2) / noise
        return float(total)

    found = minimize(cost, [y.mean(), 0, np.log(y.var() / 2), np.log(y.var() / 2)], method="L-BFGS-B").x
    return [[found[1]], [float(np.exp(found[3] / 2))]]


IN_R = cl.Guest(
    code="trend <- function(rows) { fit <- lm(pressure ~ day, data = as.data.frame(rows)); c(coef(fit)[2], sigma(fit)) }",
    entry="trend",
    language="r",
    inputs=["day", "pressure"],
    output=cl.Vector([(-2, 2), (0, 30)], names=["mmHg a day", "spread"]),
    blocks=5,
    seconds=1,
)


def main() -> None:
    """Run both under one budget, where this machine has their sandboxes."""
    with cl.Session({"visits": visits()}, budget=cl.PureDP(8)) as session:
        for guest in (mixed, IN_R):
            if why := why_not(guest.language):
                print(f"{guest.name} is left out: {why}")
                continue
            tried = guest.rehearse(session, "visits")
            print(f"{guest.name} on made-up rows: {sum(ran.done for ran in tried)} of {len(tried)} blocks returned in time")
            print(guest.run(session, "visits", 4, admitted=admit(guest, by=["Ana"])))
        print(f"left: {session.remaining}")


def visits() -> cl.PrivateTable:
    """Four visits a patient; pressure rises by half a unit a day."""
    random = Random.deterministic(21)
    patients = [f"p{number}" for number in range(PATIENTS) for _ in range(VISITS)]
    base = [100 + int(each) for each in random.below(20, PATIENTS)]
    day = [int(each) for each in random.below(30, PATIENTS * VISITS)]
    noise = [int(each) - 5 for each in random.below(11, PATIENTS * VISITS)]
    pressure = [base[k // VISITS] + day[k] // 2 + noise[k] for k in range(PATIENTS * VISITS)]
    columns = {"day": cl.Integer(0, 30), "pressure": cl.Integer(60, 220)}
    return cl.PrivateTable({"patient": patients, "day": day, "pressure": pressure}, columns, unit="patient", max_rows=VISITS)


if __name__ == "__main__":
    main()
