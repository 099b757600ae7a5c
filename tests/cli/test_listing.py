"""`silodp list`: names, and where each comes from."""

import re

from silodp.algorithms import ALGORITHMS
from silodp.cli import main
from silodp.cli.listing import source_of
from silodp.datasets import DATASETS


def test_each_algorithm_is_listed_with_the_paper_that_its_file_names_and_each_data_set_with_its_citation(capsys):
    assert main(["list"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    for name in ALGORITHMS:
        assert f"{name} {source_of(name)}" in lines
        assert re.search(r"paper|arXiv", source_of(name)), name
    for name, dataset in DATASETS.items():
        assert dataset.citation
        assert any(line.startswith(f"{name} ") and line.endswith(" ".join(dataset.citation.split())) for line in lines)
