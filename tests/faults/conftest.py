"""Fifty items, and rwq."""

import pytest
import redis

from tests.driver import Rwq
from tests.faults.verbs import Stage


@pytest.fixture
def stage(rwq: Rwq, raw: redis.Redis) -> Stage:
    return Stage(rwq, raw)
