"""Seedance observability: GPU node exporter, dashboards, alert rules and cost app."""

__version__ = "0.1.0"
