"""An experiment's configuration comes in; trials, chosen points and tables go out.

Read `task.py` first, then `training.py`, `selection.py` and `table.py`.
"""
