"""What every model has: parameters, bounds, encodings, sums with noise, learning from tables, cards, portable text."""
