"""Hierarchies: how a value becomes coarser, level by level.

hierarchy.py    `Hierarchy`, and its constructors; ladder.py: a hierarchy resolved for the values of one column
table.py        levels written down by hand or read from a CSV file (ARX's layout)
intervals.py, dates.py, masking.py, learnt.py    levels by a rule
chosen.py       what a column gets that has none
"""
