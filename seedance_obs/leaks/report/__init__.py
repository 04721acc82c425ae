"""The exporter's page of leaks, read and told to a person at a terminal."""
