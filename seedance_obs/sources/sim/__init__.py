"""Simulated machines: the driver, page and file systems of a node that does not exist."""
