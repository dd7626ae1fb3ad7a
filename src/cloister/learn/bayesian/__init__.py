"""Naive Bayes and discriminants: noisy counts, sums and sums of squares of classes."""
