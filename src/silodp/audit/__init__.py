"""The plans of all silos come in; whether the trainer's messages are made as they say goes out.

Read `canary.py` first, then `mechanism_check.py`.
"""
