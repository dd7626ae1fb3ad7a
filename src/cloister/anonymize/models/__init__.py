"""Privacy models: what each class of a published table has to meet, and the attack that made each necessary."""
