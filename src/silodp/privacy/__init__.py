"""Plans (noise, batch) come in; both ends of the true ε, or the noise for a wanted ε, go out.

Read `plan.py` first, then `true_epsilon.py`.
"""
