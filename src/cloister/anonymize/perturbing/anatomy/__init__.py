"""A table in two pieces: who the records are like, and what they have, joined by group only (Xiao & Tao 2006).

anatomy.py: can it be done at all, the groups, the two tables and the check of what they tell;
counting.py: counts read of the two tables, with their error.
"""
