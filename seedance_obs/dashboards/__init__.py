"""The Grafana dashboards as functions that return values."""
