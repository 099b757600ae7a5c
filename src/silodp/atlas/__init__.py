"""A mechanism written down as data (docs/atlas.md) comes in; both ends of its true ε go out.

Read `mechanism.py` first, then `bounds.py`.
"""
