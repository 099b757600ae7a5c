"""A model, a plan and the silos' records come in; the messages that silos send go out.

Read `messages.py` first, then `simulated.py`, the server's side.
"""
