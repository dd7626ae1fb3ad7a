"""Groups of records that are near one another, each published as its group's middle.

mdav.py: MDAV and V-MDAV on points; blocks.py: for millions of records; univariate.py: the exact optimum for one column.
replacing.py: means, medians, modes, and what they lose. microaggregation.py: records as points, whole tables.
"""
