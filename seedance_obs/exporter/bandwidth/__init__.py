"""The fast loops of a node, joined with its topology and with who holds its GPUs."""
