"""The whole stack on one machine: fleet, Prometheus, Alertmanager and the cost app."""
