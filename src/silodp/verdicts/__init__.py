"""Tables and bounds come in; a verdict with its evidence for each claim goes out.

Read `words.py` first, then `comparisons.py` and the folders claims and checks.
"""
