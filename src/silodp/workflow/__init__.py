"""A run comes in; names of its outputs, the digest of each job, provenance and a publication go out.

Read `outputs.py` first, then `job_digest.py`.
"""
