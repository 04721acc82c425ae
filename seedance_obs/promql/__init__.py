"""The small client of the Prometheus HTTP API."""
