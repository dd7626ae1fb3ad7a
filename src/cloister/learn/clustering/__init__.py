"""k-means and mixtures: rounds of noisy counts and sums."""
