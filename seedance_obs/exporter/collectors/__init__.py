"""One file per collector; each registers itself, and the registry finds the files."""
