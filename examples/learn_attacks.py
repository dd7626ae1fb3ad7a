"""A total before and after somebody joins: exact totals tell the salary, totals at ε don't.

python examples/learn_attacks.py
"""

from __future__ import annotations

import cloister as cl
from cloister.attacks import audit
from cloister.noise import DiscreteLaplace
from cloister.privacy import About, Inference
from cloister.session import Question, Sum

BOUND = 200_000
ABOUT: tuple[About, ...] = ("presence", "value")


def main() -> None:
    """Publish both totals exactly, then at ε = 1, and say what an attacker is left with."""
    february = [52_000 + 1_500 * place for place in range(40)]
    march = [*february, 156_000]
    print(f"exact totals: {sum(february):,} and {sum(march):,}; so the newcomer earns {sum(march) - sum(february):,}\n")

    salary = {"salary": cl.Integer(0, BOUND)}
    tables = {
        month: cl.PrivateTable({"salary": salaries}, columns=salary, population="staff")
        for month, salaries in (("february", february), ("march", march))
    }
    total = Sum(column="salary", name="total")
    with cl.Session(tables, budget=cl.PureDP(2)) as session:
        totals = {month: session.measure(Question(table=month, statistics=(total,)), spend=1) for month in tables}
        for month, answer in totals.items():
            print(f"{month}\n{answer}\n")
    difference = int(totals["march"]["total"][0]) - int(totals["february"]["total"][0])
    print(f"the newcomer earns {difference:,}, says whoever subtracts these")

    found = audit(DiscreteLaplace.for_epsilon(1, sensitivity=BOUND), sum(february), sum(march), runs=100_000)
    print(f"the best attack that an audit finds: ε of at least {found.epsilon:.2f}; promised was 1")
    presence, value = (float(Inference.of(cl.PureDP(1), about=about).right) for about in ABOUT)
    print(f"at ε = 1 a guess that is right 1 time in 2 becomes right {presence:.0%} of the time at best: who is on the payroll?")
    print(f"and {value:.0%} of the time: what does somebody earn who is? ε counts twice there")


if __name__ == "__main__":
    main()
