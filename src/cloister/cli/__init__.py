"""The command line: `cloister`. What it prints comes from releases, plans and the ledger; nothing is computed here.

Lives here: commands, their options, and the reading of declaration files. May not live here: anything that a program would also
want.
"""

from cloister.cli.main import cli, main

__all__ = ["cli", "main"]
