"""What is wrong with Prometheus rules that promtool does not see."""
