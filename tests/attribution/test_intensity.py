from random import Random

import pytest

from seedance_obs.attribution.intensity import OWN_COLUMNS, Intensities
from tests.attribution.made_up_board import Board, Sharer, burst, levels, steady

MINUTES = 60


def shares(weights):
    whole = sum(weights.values())
    return [weights[i] / whole for i in sorted(weights)]


def by_activity(activities):
    whole = sum(activities.values())
    return [a / whole if whole else 1 / len(activities) for a in activities.values()]


def errors(board, seconds, *, after=0, learner=None):
    """The largest error of an account's energy over that of all: learned, and by activity."""
    learner = learner or Intensities()
    count = len(board.sharers)
    parts = dict.fromkeys(range(count), 1 / count)
    off, off_by_activity, whole = [0.0] * count, [0.0] * count, 0.0
    for tick, (activities, watts, measured) in enumerate(board.ticks(seconds)):
        learner.learn(activities, parts, measured, 1.0)
        if tick < after:
            continue
        whole += sum(watts)
        learned = shares(learner.weights(activities, parts)[0])
        for i, (true, share, plain) in enumerate(
            zip(watts, learned, by_activity(activities), strict=True)
        ):
            off[i] += share * sum(watts) - true
            off_by_activity[i] += plain * sum(watts) - true
    return max(map(abs, off)) / whole, max(map(abs, off_by_activity)) / whole


def learned(board, seconds):
    learner = Intensities()
    parts = dict.fromkeys(range(len(board.sharers)), 1 / len(board.sharers))
    for activities, _, measured in board.ticks(seconds):
        learner.learn(activities, parts, measured, 1.0)
    return learner


def time_sliced(*watts, exponent=1.0):
    """Bursts that do not keep step, of 50 ms to seconds."""
    shapes = [(3.7, 0.6, 0.45), (11.3, 0.5, 0.5), (0.95, 0.4, 0.4)]
    return [
        Sharer(burst(*shape), size, exponent) for shape, size in zip(shapes, watts, strict=False)
    ]


@pytest.mark.parametrize("base", [0.0, 40.0])
@pytest.mark.parametrize("exponent", [1.0, 0.7])
def test_intensities_of_one_to_three_are_learned_from_bursts(base, exponent):
    board = Board(time_sliced(120, 360, exponent=exponent), base, rest_s=15)
    ours, plain = errors(board, 14 * MINUTES, after=10 * MINUTES)
    assert ours <= 0.03
    assert plain > 0.12


@pytest.mark.parametrize("seed", range(4))
def test_intensities_are_learned_from_partial_activity_on_a_concave_curve(seed):
    random = Random(seed)
    sharers = [
        Sharer(levels(random, 4, 0.05, 0.45), 120, 0.7),
        Sharer(levels(random, 7, 0.0, 0.4), 360, 0.7),
    ]
    ours, plain = errors(
        Board(sharers, 20.0, rest_s=15, seed=seed), 14 * MINUTES, after=10 * MINUTES
    )
    assert ours <= 0.03
    assert plain > 0.2


def test_bursts_of_50_ms_between_longer_pauses_are_told_apart():
    sharers = [
        Sharer(lambda step: burst(0.1, 0.5, 0.5)(step) * burst(9.7, 0.5, 1.0)(step), 120),
        Sharer(burst(6.1, 0.5, 0.5), 360),
    ]
    ours, plain = errors(Board(sharers, 20.0, rest_s=15), 14 * MINUTES, after=10 * MINUTES)
    assert ours <= 0.03
    assert plain > 0.07


def test_like_intensities_stay_within_one_percent():
    board = Board(time_sliced(300, 300, 300), 0.0, rest_s=15)
    ours, _ = errors(board, 10 * MINUTES)
    assert ours <= 0.01


def test_a_change_of_intensity_is_followed():
    learner = Intensities()
    errors(Board(time_sliced(120, 360), 20.0, rest_s=15), 10 * MINUTES, learner=learner)
    ours, plain = errors(
        Board(time_sliced(360, 120), 20.0), 30 * MINUTES, after=20 * MINUTES, learner=learner
    )
    assert ours <= 0.03
    assert plain > 0.12


def test_the_order_of_intensities_is_shown_and_the_mean_is_one():
    learner = learned(Board(time_sliced(120, 360), 20.0, rest_s=15), 10 * MINUTES)
    low, high = learner.of(0), learner.of(1)
    assert low is not None
    assert high is not None
    assert high / low == pytest.approx(3, rel=0.1)
    assert low < 1 < high
    assert learner.evidence.used
    assert learner.evidence.residual_ratio < 0.05
    assert learner.evidence.condition_number < 100


def test_accounts_that_are_always_active_together_have_the_same_intensity():
    pattern = burst(3.7, 0.5, 0.4)
    sharers = [Sharer(pattern, 100), Sharer(pattern, 300), Sharer(burst(11.3, 0.5, 0.4), 200)]
    learner = learned(Board(sharers, rest_s=15), 10 * MINUTES)
    assert learner.of(0) == learner.of(1) == 1.0
    assert learner.evidence.condition_number > 1e3
    ours, plain = errors(Board(sharers, rest_s=15), 10 * MINUTES)
    assert ours <= plain + 0.01


def test_activities_that_never_vary_say_nothing():
    sharers = [Sharer(steady(0.2), 100), Sharer(steady(0.5), 400)]
    learner = learned(Board(sharers), 10 * MINUTES)
    parts = {0: 0.5, 1: 0.5}
    weights, _ = learner.weights({0: 0.2, 1: 0.5}, parts)
    assert learner.of(0) in (None, 1.0)
    assert learner.of(1) in (None, 1.0)
    assert weights[0] / weights[1] == pytest.approx(0.4)


def test_before_a_minute_of_ticks_the_split_is_by_activity():
    learner = learned(Board(time_sliced(120, 360), exact=True), 50)
    weights, used = learner.weights({0: 0.1, 1: 0.3}, {0: 0.5, 1: 0.5})
    assert not used
    assert learner.of(0) is None
    assert weights[1] / weights[0] == pytest.approx(3)
    assert not learner.evidence.used
    assert learner.evidence.effective_seconds == pytest.approx(50, rel=0.2)


def test_an_idle_holder_owes_its_part_of_the_measured_base_beside_a_busy_one():
    sharers = [Sharer(burst(40, 0.5, 0.8), 300), Sharer(steady(0.0), 300)]
    board = Board(sharers, 48.0, rest_s=30)
    ours, plain = errors(board, 20 * MINUTES, after=60)
    assert ours <= 0.01
    assert plain > 0.07


def test_the_first_activity_on_a_board_of_known_base_is_not_drowned_by_it():
    learner = learned(Board([Sharer(steady(0.0), 1), Sharer(steady(0.0), 1)], 40.0), 30)
    activities, parts = {0: 0.0, 1: 0.5}, {0: 0.5, 1: 0.5}
    weights, _ = learner.weights(activities, parts)
    assert shares(weights) == pytest.approx([0, 1])
    learner.learn(activities, parts, 200.0, 1.0)
    weights, _ = learner.weights(activities, parts)
    assert shares(weights) == pytest.approx([0.1, 0.9], abs=0.02)


def test_while_nobody_is_active_the_split_is_by_parts():
    weights, used = Intensities().weights({"a": 0.0, "b": 0.0}, {"a": 3 / 7, "b": 1 / 7})
    assert not used
    assert weights == {"a": 3 / 7, "b": 1 / 7}


def test_whatever_the_accounts_do_no_weight_is_negative_and_everybody_has_one():
    random = Random(5)
    learner = Intensities()
    for _ in range(3000):
        present = random.sample(range(12), 5)
        activities = {i: random.choice((0.0, random.random() / 5)) for i in present}
        parts = dict.fromkeys(present, 0.2)
        learner.learn(activities, parts, random.uniform(0, 500), 1.0)
        weights, _ = learner.weights(activities, parts)
        assert weights.keys() == parts.keys()
        assert min(weights.values()) >= 0
        assert sum(weights.values()) > 0


@pytest.mark.parametrize("told", [True, False])
def test_memory_does_not_grow_with_the_accounts_that_come_and_go(told):
    learner = Intensities()
    for birth in range(2000):
        activities = {"stays": 0.3, birth: 0.2, birth + 1: 0.1}
        parts = dict.fromkeys(activities, 1 / 3)
        learner.learn(activities, parts, 200.0, 0.3)
        learner.weights(activities, parts)
        if told:
            learner.forget(birth)
    held = [value for value in vars(learner).values() if isinstance(value, dict)]
    assert len(learner._moments.columns) <= OWN_COLUMNS
    assert max(map(len, held)) <= OWN_COLUMNS + 2 * len(activities)


def test_what_an_account_showed_of_the_board_outlives_it():
    board = Board(time_sliced(120, 360, 240), 20.0, rest_s=15)
    learner = learned(board, 10 * MINUTES)
    learner.forget(2)
    for _ in range(30):
        learner.learn({0: 0.1, 1: 0.2}, {0: 0.5, 1: 0.5}, 20.0 + 12.0 + 72.0, 1.0)
    low, high = learner.of(0), learner.of(1)
    assert low is not None
    assert high is not None
    assert high / low == pytest.approx(3, rel=0.15)


def random_board(seed):
    random = Random(seed)
    count = random.randint(2, 7)
    span, exponent = random.uniform(200, 600), random.uniform(0.6, 1.0)
    sharers = []
    for _ in range(count):
        size = random.uniform(0.1, 1) / count
        period, duty = (
            random.uniform(0.1, 1) * random.choice((1, 10, 100)),
            random.uniform(0.1, 0.9),
        )
        pattern = random.choice(
            (
                steady(size),
                burst(period, duty, size, random.uniform(0, period)),
                levels(random, period, 0.0, size),
                levels(random, period, 0.7 * size, size),
            )
        )
        sharers.append(Sharer(pattern, random.uniform(0.3, 1) * span, exponent))
    rest = random.choice((0, 15))
    return Board(sharers, random.uniform(0, 40), seed=seed, rest_s=rest)


@pytest.mark.parametrize("seed", [*range(30), 1007, 1067, 1140, 1155, 5148, 7186, 8122])
def test_no_board_is_split_worse_than_by_activity_by_more_than_one_percent(seed):
    board = random_board(seed)
    ours, plain = errors(board, 6 * MINUTES)
    assert ours <= plain + 0.01


def test_over_many_boards_the_error_is_less_than_by_activity():
    found = [errors(random_board(seed), 6 * MINUTES) for seed in range(100, 112)]
    assert sum(ours for ours, _ in found) < 0.98 * sum(plain for _, plain in found)
