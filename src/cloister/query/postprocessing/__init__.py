"""Queries that aggregate private tables and then go on: arithmetic, functions, windows, joins and aggregates over the answers.

    cut.py          where a query is cut: which parts of it are questions
    queries.py      the rest, query by query, in names of ours; expressions.py: its expressions; allowed.py: what may stand there
    values.py       what is known of a value without its noise: intervals, and the rules that carry them along
    program.py      all of it, run over the answers in a locked engine

Nothing here reads a row of a person, or spends: the questions go through the one door, and what stands above them sees what was
released and what is public.
"""
