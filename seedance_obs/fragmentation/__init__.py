"""How much of what is free is of use to what is asked for: pure."""
