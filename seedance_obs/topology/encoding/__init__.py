"""A topology in words for others: labels of series and of Kubernetes nodes, JSON."""
