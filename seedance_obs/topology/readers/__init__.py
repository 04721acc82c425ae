"""Texts that tell of a host's topology, one reader per format; no text makes a reader raise."""
