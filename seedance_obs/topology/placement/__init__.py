"""How good a set of GPUs is: pair by pair, against other sets, and by the rules of a policy."""
