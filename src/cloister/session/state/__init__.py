"""What sessions share and what each of them sees: tables, prepared rows, whose budget they spend, views, balances."""
