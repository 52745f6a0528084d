# What ends a command: the first signal, even where Python drops its exception; not the next ones.
# SPDX-License-Identifier: Apache-2.0 OR MIT
import os
import signal

import pytest
from joulemark import ending


class Ended(Exception):
    pass


class Deleted:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        pass  # here Python calls the handler


@pytest.fixture(autouse=True)
def as_before():
    before = [signal.getsignal(one) for one in ending.SIGNALS]
    with ending.as_before():
        yield
    assert [signal.getsignal(one) for one in ending.SIGNALS] == before


@pytest.mark.parametrize("number", ending.SIGNALS)
def test_the_first_ends_and_the_next_do_not(number):
    with pytest.raises(Ended, match=f"^{int(number)}$"), ending.by_the_first(Ended):
        try:
            os.kill(os.getpid(), number)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_one_that_comes_while_an_object_is_deleted_is_not_lost():
    with ending.by_the_first(Ended) as check:
        check()
        Deleted()
        with pytest.raises(Ended, match=f"^{int(signal.SIGTERM)}$"):
            check()


def test_what_is_ignored_stays_so():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup has it
    with ending.by_the_first(Ended):
        os.kill(os.getpid(), signal.SIGHUP)
