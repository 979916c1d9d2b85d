import threading

from focalcal.workflow.timers import cancel_timers


def test_timers_end_at_once_and_other_threads_go_on():
    fired, going_on = threading.Event(), threading.Event()
    timers = [threading.Timer(60, fired.set) for _ in range(3)]
    other = threading.Thread(target=going_on.wait)
    for thread in (*timers, other):
        thread.start()
    cancel_timers()
    for timer in timers:
        timer.join(timeout=10)
    assert not any(timer.is_alive() for timer in timers)
    assert not fired.is_set()
    assert other.is_alive()
    going_on.set()
    other.join()
