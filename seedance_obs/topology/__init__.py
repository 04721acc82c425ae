"""Which device reaches which over what. Pure: plain values in, plain values out.

`model` has the nouns. `readers` make a topology of a text, `wiring`, `pcie_tree`, `nvlinks`,
`domains`, `distance` and `bandwidth` what follows from one; `encoding` says it to other programs,
`drawing` to people. `placement` compares sets of GPUs, `declared` checks topologies that people
write.
"""
