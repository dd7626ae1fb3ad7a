"""How good a model is, found out privately: scores with margins, cross-validation, choice of a setting, the price of privacy."""
