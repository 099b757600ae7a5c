"""Plug-ins come in; registered algorithms and data sets that keep the project's contract go out.

Read `plugins.py` first, then `contract.py`.
"""
