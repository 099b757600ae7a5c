"""One experiment from its tasks to its tables: training, selection, guard, true epsilon, audit, check-ins."""
