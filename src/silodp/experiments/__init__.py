"""One experiment from its tasks to its tables: training, selection, guard, delivered epsilon, audit, check-ins."""
