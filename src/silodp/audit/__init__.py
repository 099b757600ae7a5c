"""A plan comes in; a lower end of ε that runs with a canary show, and tests of the mechanism, go out.

Read `canary.py` first, then `lower_bound.py`.
"""
