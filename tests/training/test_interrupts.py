import os
import signal
import threading

import pytest

from icl.errors import Interrupted
from icl.training.interrupts import Interrupts


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_one_signal_is_noted_and_a_second_stops(signum: int) -> None:
    before = signal.getsignal(signum)
    with pytest.raises(Interrupted) as caught, Interrupts() as interrupts:
        assert interrupts.signum is None
        os.kill(os.getpid(), signum)
        assert interrupts.signum == signum
        os.kill(os.getpid(), signum)
    assert caught.value.signum == signum
    assert signal.getsignal(signum) is before


def test_listening_again_takes_the_signals_back() -> None:
    with Interrupts() as interrupts:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        interrupts.listen()
        os.kill(os.getpid(), signal.SIGTERM)
        assert interrupts.signum == signal.SIGTERM


def test_other_threads_take_no_signals() -> None:
    """Run in another thread, where signals cannot be set, as joblib's threading backend does."""
    seen: list[object] = []

    def work() -> None:
        with Interrupts() as interrupts:
            interrupts.listen()
            seen.append(interrupts.signum)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [None]
