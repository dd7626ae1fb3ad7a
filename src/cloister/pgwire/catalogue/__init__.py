"""Catalogue queries, answered from public declarations.

declared.py    declarations as rows of pg_catalog and information_schema; relations.py: which columns these have
functions.py   PostgreSQL's functions as macros, and the list of those that may be called
rewriting.py   a query in PostgreSQL's words → one for the sandbox
sandbox.py     an engine in memory with neither files nor network, a time limit and a limit of rows
"""
