"""What an owner declares: a table, its columns, what names something, which days; as plain data and from metadata."""
