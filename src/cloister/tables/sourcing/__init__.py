"""Where rows come from and how they become codes: files, frames, databases, encrypted files; whose rows a source holds."""
