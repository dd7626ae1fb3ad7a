"""Several tables of one report, measured together: what each would have had as its margin alone, and what it has now."""

from __future__ import annotations

import cloister as cl
from cloister.samples import census

QUESTIONS = {
    "income by sex": "SELECT sex, income, COUNT(*) AS n FROM census GROUP BY sex, income",
    "sex": "SELECT sex, COUNT(*) AS n FROM census GROUP BY sex",
    "education": "SELECT education, COUNT(*) AS n FROM census GROUP BY education",
    "everybody": "SELECT COUNT(*) AS n FROM census",
}
SPEND = "0.1"


def main() -> None:
    """Print both margins for each question."""
    with cl.Session({"census": census()}, budget=cl.PureDP(1)) as session:
        part = cl.PureDP(SPEND).epsilon / len(QUESTIONS)
        alone = {name: session.explain(text, spend=part).margin()["n"][0] for name, text in QUESTIONS.items()}
        answers = session.workload(list(QUESTIONS.values()), spend=SPEND)
        for (name, margin), answer in zip(alone.items(), answers, strict=True):
            print(f"{name:<14} alone ± {margin:>4,.0f}   together ± {answer.margin()['n'][0]:>4,.0f}")
        print(f"spent: {session.spent}")


if __name__ == "__main__":
    main()
