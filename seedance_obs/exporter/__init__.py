"""The scrape target of a GPU node: sampler, collectors and HTTP server."""
