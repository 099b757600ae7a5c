import pytest
from example_table import results_table


@pytest.fixture
def table():
    return results_table()
