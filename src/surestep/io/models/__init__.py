"""Reads models of probabilistic model checkers and of Gymnasium, and writes UMB archives.

A `CheckerModel` is a model as checkers store it. `checker` converts it to a `FiniteMDP` and back,
`umb` reads and writes it as an archive, and `prism` has Storm build it from a program. `gymnasium`
reads tables of transitions directly.
"""
