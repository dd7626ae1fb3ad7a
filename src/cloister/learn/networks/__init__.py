"""A small neural network, its clipped gradients, and the accountant of its noise."""
