"""What is made of tables and still has a unit: joins, lookups, derived rows, one row a person, rows one under another."""
