"""What leaks or lies idle on a node: growth, idle windows and holders that do nothing. Pure."""
