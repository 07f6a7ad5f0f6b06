"""Work over processes gives what one process gives, and stops when something fails."""

import os
import time
from functools import partial

import pytest
import torch

from elute.errors import EluteError
from elute.experiment.parallel import parallel


def square(x, report):
    report("squaring", 1, 2)
    time.sleep(1)  # on a busy machine the word needs a while
    return x * x, os.getpid(), torch.get_num_threads()


def fail_at(bad, x, report):
    if x == bad:
        raise EluteError("this one is bad", hint="take another")
    time.sleep(30)


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_thing_is_done_once(jobs):
    told = []
    done = dict(parallel(square, [3, 4, 5], jobs=jobs, progress=lambda *row: told.append(row)))
    assert {i: value[0] for i, value in done.items()} == {0: 9, 1: 16, 2: 25}
    assert told  # from other processes the last word may be missing
    assert set(told) <= {(i, "squaring", 1, 2) for i in range(3)}
    here = {value[1] for value in done.values()} == {os.getpid()}
    assert here == (jobs == 1)
    if jobs > 1:
        assert {value[2] for value in done.values()} == {1}  # threads


def test_a_failure_ends_the_others_at_once_and_keeps_its_hint():
    began = time.monotonic()
    with pytest.raises(EluteError, match="bad") as stopped:
        list(parallel(partial(fail_at, 1), [0, 1], jobs=2))
    assert stopped.value.hint == "take another"
    assert time.monotonic() - began < 25
