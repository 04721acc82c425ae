"""The only code that touches a machine: drivers, pages, /proc, /sys, and the simulator."""
