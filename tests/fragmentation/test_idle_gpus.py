from seedance_obs.fragmentation.idle_gpus import Interval, Kind, idle_gpus


def test_idle_time_is_told_apart_by_whether_anything_waits():
    found = idle_gpus([Interval(60, 8, 2, 4), Interval(30, 8, 6, 0)])
    assert (found.while_pending_gpu_seconds, found.unwanted_gpu_seconds) == (120, 180)
    assert (found.idle_gpu_seconds, found.total_gpu_seconds) == (300, 720)


def test_what_is_not_known_is_of_neither_kind_and_not_in_the_total():
    known = Interval(10, 8, 8, 0)
    assert idle_gpus([Interval(60, 8, None, 4), Interval(60, 8, 2, None), known]) == (
        idle_gpus([known])
    )


def test_where_nothing_idles_there_is_no_kind():
    assert idle_gpus([]).kind() is None
    assert idle_gpus([Interval(60, 8, 0, 3)]).kind() is None


def test_the_kind_is_by_what_waits_first_and_by_how_much_idles_then():
    waited = Interval(1, 8, 8, 1)
    assert idle_gpus([waited, *[Interval(1, 8, 8, 0)] * 9]).kind() is Kind.FRAGMENTATION
    assert idle_gpus([waited, *[Interval(1, 8, 8, 0)] * 10]).kind() is Kind.WASTE
    assert idle_gpus([Interval(1, 8, 4, 0)]).kind() is Kind.HEADROOM
    assert idle_gpus([Interval(1, 8, 5, 0)]).kind() is Kind.WASTE
    assert idle_gpus([Interval(1, 8, 5, 0)]).kind(mostly=0.7) is Kind.HEADROOM
