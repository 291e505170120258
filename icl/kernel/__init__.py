"""A compiled kernel for straight-line programs of small matrices, where a C++ compiler was.

`recording` runs a function of torch tensors once on symbols and keeps what it did; `program` prepares that
list for `tiles.cpp`, which runs it forward and back over tiles of prompts held in vector registers; `library`
loads what `build` compiled; `fused` is the function again, as torch sees it.
"""
