"""Models of model checkers and of Gymnasium to our own, and back.

Every road but Gymnasium's leads over one noun, the model as checkers store it: `checker` turns it
into ours and back, `umb` reads and writes it in archives, `prism` lets Storm build it from a
program.
"""
