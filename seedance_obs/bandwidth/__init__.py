"""How busy links and memories are, who shares them, and what that does to whom: pure."""
