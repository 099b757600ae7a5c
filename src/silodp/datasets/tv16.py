"""Votes of 2016: 39,304 respondents of the Cooperative Congressional Election Study in 51 states; class: voted Trump.

Respondents with a vote, an income and four answers about religion. Party, ideology and opinions are left out.
"""

from functools import partial

from silodp.datasets.base import Dataset
from silodp.datasets.own.encoding import read_registered
from silodp.datasets.own.schema import Column, Schema
from silodp.datasets.rdatasets import to_csv

_NUMBERS = ("age", "famincr", "bornagain", "religimp", "churchatd", "prayerfreq")
_NUMBER = Column("number")
SCHEMA = Schema(
    target="votetrump",
    silo="state",
    columns={
        "state": Column("name"),
        "votetrump": Column("category", ("0", "1")),
        **dict.fromkeys(("age", "female", "collegeed"), _NUMBER),
        "racef": Column(
            "category",
            (*("Asian", "Black", "Hispanic", "Middle Eastern", "Mixed", "Native American", "Other", "White"),),
        ),
        **dict.fromkeys(_NUMBERS[1:], _NUMBER),
    },
)
# Records of each silo.
_SIZES = (
    "422 71 929 292 3611 707 425 166 120 3028 1153 114 215 1595 862 481 346 561 398 228 747 890 1351 750 221 "
    "860 144 252 433 242 1070 250 2438 1225 87 1725 359 711 2199 129 509 101 689 2438 327 81 1242 921 247 878 "
    "64"
)

DATASET = Dataset(
    name="tv16",
    title="Votes of 2016",
    task="classification",
    embedded=False,
    licence="GPL-2, of the R package stevedata",
    citation="S. Ansolabehere, B. Schaffner, Cooperative Congressional Election Study 2016; R package stevedata",
    records=39304,
    features=16,
    class_counts=(23286, 16018),
    standardise_columns=_NUMBERS,
    silo_records=tuple(map(int, _SIZES.split())),
    loader=partial(read_registered, schema=SCHEMA),
    converted=partial(to_csv, columns=tuple(SCHEMA.columns), rows="age > 0"),
)
