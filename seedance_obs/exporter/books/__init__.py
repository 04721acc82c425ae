"""Who used what on this node: from processes, pods and boards to accounts that only grow."""
