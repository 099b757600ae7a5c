"""Parts of a page that a benchmark writes, between two marks."""

from pathlib import Path

# Around the table of race.py in RACE.md, of scale.py and both of gpu.py in RESULTS.md.
SCALE = "<!-- scale -->", "<!-- end of scale -->"
RACE = "<!-- race -->", "<!-- end of race -->"
GPU = "<!-- gpu -->", "<!-- end of gpu -->"
GPU_TARGETS = "<!-- gpu targets -->", "<!-- end of gpu targets -->"


def write_between(page: Path, begin: str, end: str, text: str) -> None:
    """Replace what stands between two marks of a page; ValueError where it does not hold each of them once."""
    before, rest = page.read_text(encoding="utf-8").split(begin)
    _, after = rest.split(end)
    page.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")
