"""Principal components: noisy second moments, private directions, and what they capture."""
