"""dcgm-exporter as a source: its page fetched, read whatever its generation, and checked."""
