"""How much of a node's GPUs nobody holds, and of how little use that is to what is placed here."""
