"""Own data: a run file, a study, a released model."""
