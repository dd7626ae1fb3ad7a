"""Lines and linear classifiers: from noisy moments, perturbed objectives, private descent; and their margins."""
