"""The cost app: what each tenant used over a window, read by PromQL."""
