"""What aggregates exactly: DuckDB, PostgreSQL, Spark, and what they share (requests, the compiler, memory, the order of rows)."""
