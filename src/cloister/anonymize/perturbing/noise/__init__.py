"""Noise on whole columns, what an analyst reads of it, and the attack on it.

laws.py: the laws of the noise; additive.py: added, by itself or with the columns' correlations, or as factors.
reconstruction.py: the original distribution out of noised values; filtering.py: noise taken off correlated columns.
"""
