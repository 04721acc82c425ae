"""The kubelet's pod-resources API, version 1: which pod holds which device of this node."""
