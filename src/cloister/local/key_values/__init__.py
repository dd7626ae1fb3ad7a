"""Which keys people hold and the values of these."""
