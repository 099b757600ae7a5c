"""Tables and verdicts come in; figures and the page go out.

Read `paper_figures.py` first, then the folders figures and page.
"""
