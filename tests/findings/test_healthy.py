"""False alarms: healthy logs of many kinds and seeds yield no error and no warning."""

import pytest

from tests.findings.healthy import KINDS
from tests.findings.synthetic import loud, make

SEEDS = range(30)
QUICK = range(3)


@pytest.mark.parametrize("kind", KINDS)
def test_a_healthy_log_raises_no_alarm(kind: str) -> None:
    for seed in QUICK:
        assert list(loud(make(seed, KINDS[kind]))) == [], f"{kind}, seed {seed}"


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_healthy_log_raises_no_alarm_with_thirty_seeds(kind: str) -> None:
    alarms = {seed: list(found) for seed in SEEDS if (found := loud(make(seed, KINDS[kind])))}
    assert alarms == {}
