import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).parent))

from moving import Services  # noqa: E402


@pytest.fixture
def services(tmp_path):
    services = Services(tmp_path)
    services.start()
    yield services
    services.stop()
