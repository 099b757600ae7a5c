"""A file of records comes in; a run file, a study and predictions go out.

Read `study.py` first.
"""
