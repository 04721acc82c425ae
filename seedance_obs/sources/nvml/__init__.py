"""NVML behind one narrow boundary: a named call on a device, answered with plain values."""
