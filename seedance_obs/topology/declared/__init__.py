"""Topologies as people declare them: nodes of resources and jobs, and the edges between them."""
