"""Readers of the texts that tell a topology, one module for each format."""
