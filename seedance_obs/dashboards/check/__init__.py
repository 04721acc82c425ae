"""What is wrong with a Grafana dashboard, whoever made it: read from its JSON alone."""
