"""Pictures of pages and cards for docs/own-data.md, by Chromium without a window.

`python benchmarks/own_pictures.py OUTPUT NAME=FILE:HEIGHT …` writes OUTPUT/NAME.png, the first HEIGHT points of each
report.html or card.md at a width of 1,000, in 128 colours.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from markdown_it import MarkdownIt
from PIL import Image

WIDTH = 1000
_CHROMIUM = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"]
_CHROMIUM += ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic"]
_STYLE = "<meta charset=utf-8><style>body {font: 16px/1.45 sans-serif; margin: 24px 40px; max-width: 900px}</style>"


def draw(file: Path, height: int, output: Path) -> None:
    """One picture; a card becomes HTML first."""
    with tempfile.TemporaryDirectory() as folder:
        if file.suffix == ".md":
            html = Path(folder) / "card.html"
            html.write_text(_STYLE + MarkdownIt().render(file.read_text(encoding="utf-8")), encoding="utf-8")
            file = html
        options = [f"--user-data-dir={folder}", f"--window-size={WIDTH},{height}", f"--screenshot={output}"]
        subprocess.run([*_CHROMIUM, *options, file.resolve().as_uri()], check=True, capture_output=True, timeout=600)
    Image.open(output).convert("RGB").quantize(128).save(output, optimize=True)


def main() -> None:
    """All pictures of the command line."""
    output = Path(sys.argv[1])
    output.mkdir(parents=True, exist_ok=True)
    for word in sys.argv[2:]:
        name, _, rest = word.partition("=")
        file, _, height = rest.rpartition(":")
        draw(Path(file), int(height), output / f"{name}.png")


if __name__ == "__main__":
    main()
