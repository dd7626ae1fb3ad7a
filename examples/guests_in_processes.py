"""Two guests that need more than pure Python: a regression with mixed effects by statsmodels, and a script of R.

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
    seconds=1,
    memory=1024,
    packages=["pandas", "statsmodels.formula.api"],
)
def mixed(rows: dict[str, list[Any]]) -> list[list[float]]:
    """A slope for all and an intercept for each patient, as statsmodels fits it."""
    import pandas
    import statsmodels.formula.api as models

    visits = pandas.DataFrame(rows)
    found = models.mixedlm("pressure ~ day", visits, groups=visits["patient"]).fit()
    return [[found.fe_params["day"]], [found.cov_re.iloc[0, 0] ** 0.5]]


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
