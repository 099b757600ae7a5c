"""A data set comes in; each silo's records of a trial go out, cut, preprocessed and as tensors.

Read `trial_data.py` first, then `partition.py`, the cut into silos.
"""
