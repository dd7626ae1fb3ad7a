"""What every service stands on, each with its own acts and pages: audit log, accounts, access, jobs, catalogue, budgets.

They are services like those in `hub/services`, in the order of .importlinter: one uses those before it, of each only what its
`__init__` exports, and nothing of `hub/work` or `hub/releases`.
"""
