"""Claims of the papers, decided by a run: `claims.csv`; config/claims/*.yaml holds each with its statistic and rule."""
