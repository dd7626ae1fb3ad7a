"""Several questions about the same rows, measured together so that the answers agree: marginals, ranges, grouping sets."""
