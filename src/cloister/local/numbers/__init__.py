"""Numbers of people: means, distributions, angles."""
