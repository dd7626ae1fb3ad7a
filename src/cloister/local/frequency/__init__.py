"""How many people have each value: frequency oracles, sketches, RAPPOR, heavy hitters."""
