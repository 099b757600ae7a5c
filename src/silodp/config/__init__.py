"""Run files and experiments come in as YAML; checked objects go out, or one line that names file, key and value.

Read `run_keys.py` and `experiment.py` first, then `loading.py`, which merges their layers.
"""
