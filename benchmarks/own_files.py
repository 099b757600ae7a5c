"""Three made files of shapes that no default was chosen by, for `silodp init` and a whole run.

`python benchmarks/own_files.py FOLDER` writes hospitals.csv (seven hospitals from 18 to 2,600 patients, "?" for a
missing reading, an identity number, one reading a thousand times too large), prices.csv (a price by state, semicolons,
Latin-1) and visits.parquet (2,263 visits of 300 persons to four clinics, up to 60 a person, float16 readings).
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd


def hospitals() -> pd.DataFrame:
    """Unequal hospitals; about one patient in ten is readmitted."""
    generator = np.random.default_rng(101)
    sizes = {"Aldbury": 2600, "Barrow": 1100, "Carden": 520, "Denholm": 260, "Eyam": 120, "Feltwell": 60, "Glossop": 18}
    n = sum(sizes.values())
    age, pressure = generator.normal(62, 14, n).clip(18, 99).round(), generator.normal(135, 18, n).round(1)
    smoker, ward = generator.choice(["yes", "no"], n, p=[0.3, 0.7]), generator.choice(["A", "B", "C"], n)
    stay = generator.gamma(2.0, 3.0, n).round(1)
    logit = -3.4 + 0.04 * (age - 62) + 0.02 * (pressure - 135) + 1.2 * (smoker == "yes") + 0.12 * stay
    frame = pd.DataFrame(
        {"hospital": np.repeat(list(sizes), list(sizes.values())), "patient_nr": np.arange(n) + 70_001}
    )
    frame = frame.assign(age=age, pressure=pressure.astype(str), smoker=smoker, ward=ward, stay=stay)
    frame.loc[generator.choice(n, 9, replace=False), "pressure"] = "?"
    frame.loc[17, "stay"] = 7400.0
    return frame.assign(readmitted=np.where(logit + generator.logistic(size=n) > 0, "yes", "no"))


def prices() -> pd.DataFrame:
    """A price by state: a regression; states differ in level."""
    generator, n = np.random.default_rng(102), 3000
    states = generator.choice(["Île", "Nord", "Süd", "Ouest", "Est"], n, p=[0.35, 0.25, 0.2, 0.15, 0.05])
    area, rooms, built = (
        generator.gamma(6, 18, n).round(),
        generator.integers(1, 8, n),
        generator.integers(1890, 2024, n),
    )
    level = pd.Series({"Île": 900.0, "Nord": 400.0, "Süd": 550.0, "Ouest": 480.0, "Est": 350.0})[states].to_numpy()
    price = level * area / 4 + 6000 * rooms + 90 * (built - 1950) + generator.normal(0, 9000, n)
    zips = generator.integers(10_000, 99_999, n)
    return pd.DataFrame(
        {"state": states, "zip": zips, "area": area, "rooms": rooms, "built": built, "price": price.round()}
    )


def visits() -> pd.DataFrame:
    """Visits of persons, some of many, to clinics; the outcome follows from readings and from the person."""
    generator = np.random.default_rng(103)
    counts = np.minimum(1 + generator.geometric(0.15, 300), 60)
    counts[:3] = 60
    person = np.repeat(np.arange(300), counts)
    n = len(person)
    readings = generator.normal(size=(n, 4)) + generator.normal(size=(300, 4))[person]
    frame = pd.DataFrame(readings.astype(np.float16), columns=["pulse", "glucose", "weight", "sleep"])
    frame["clinic"] = np.array(["North", "South", "East", "West"])[generator.integers(0, 4, 300)[person]]
    frame["person"] = [f"p{one}" for one in person]
    severe = readings @ [1.0, 1.5, 0.5, -1.0] + generator.normal(0, 1, n)
    return frame.assign(state=np.digitize(severe, [-1.5, 1.5])).assign(
        state=lambda found: np.array(["low", "middle", "high"])[found["state"]]
    )


def write(folder: Path) -> None:
    """Write the three files."""
    folder.mkdir(parents=True, exist_ok=True)
    hospitals().to_csv(folder / "hospitals.csv", index=False)
    prices().to_csv(folder / "prices.csv", index=False, sep=";", encoding="latin-1")
    import pyarrow as pa
    import pyarrow.parquet

    frame = visits()
    columns = {name: pa.array(frame[name].to_numpy()) for name in frame}
    pyarrow.parquet.write_table(pa.table(columns), folder / "visits.parquet")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
