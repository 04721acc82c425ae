"""Looks for leaks on this node: what boards, processes and the host tell, joined at each probe."""
