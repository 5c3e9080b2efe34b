"""The client against a running service, on both databases."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.live import Live
from torchyard import api, exceptions, snapshot
from torchyard.client import Client
from torchyard.spec import JobSpec, Resources
from torchyard.states import JobState

pytest_plugins = ["tests.support.live"]
