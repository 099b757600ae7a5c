"""How a command ends: its code, and one line for bad input and for a fault of the machine."""

import errno

import pytest

from silodp.workflow.ending import exit_code_of

FULL = OSError(errno.ENOSPC, "No space left on device", "a.csv")
ENDS = [
    (ValueError("a.yaml: seed: -1: must be at least 0"), 2, "silodp x: a.yaml: seed: -1: must be at least 0"),
    (FileNotFoundError(errno.ENOENT, "No such file or directory", "a.csv"), 2, "a.csv"),
    (FULL, 1, "a.csv"),
    (MemoryError(), 1, "silodp x: memory: too little is free: must be more, or a smaller run"),
    (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), 1, "silodp x: memory: too little is free"),
]


@pytest.mark.parametrize("verbose", [False, True])
@pytest.mark.parametrize(("error", "code", "said"), ENDS, ids=lambda value: type(value).__name__)
def test_a_fault_of_input_or_machine_is_one_line_unless_more_is_asked_for(error, code, said, verbose, capsys):
    def work():
        raise error

    if verbose:
        with pytest.raises(type(error)):
            exit_code_of("silodp x", work, verbose)
        return
    assert exit_code_of("silodp x", work) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("silodp x: ")
    assert said in line


@pytest.mark.parametrize("error", [RuntimeError("a slip"), KeyError("slip"), BrokenPipeError()])
def test_a_fault_of_the_program_and_a_reader_that_left_are_not_hidden(error):
    def work():
        raise error

    with pytest.raises(type(error)):
        exit_code_of("silodp x", work)


def test_a_code_is_handed_on_and_none_is_0():
    assert [exit_code_of("silodp x", lambda code=code: code) for code in (None, 0, 1, 3)] == [0, 0, 1, 3]
