"""What the rules of the workflow call: a file for each job, with a function of the same name.

A rule runs `python -m silodp.jobs NAME argument=value …`. Read `__main__.py` first, then `train.py`.
"""
