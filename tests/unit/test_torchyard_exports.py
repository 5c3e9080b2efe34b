import importlib.metadata

import torchyard


def test_all_is_sorted_and_listed() -> None:
    assert torchyard.__all__ == sorted(torchyard.__all__)
    assert set(torchyard.__all__) <= set(dir(torchyard))


def test_the_calls_of_a_script_are_functions() -> None:
    for name in ("checkpoint", "report", "restore", "should_checkpoint"):
        assert callable(getattr(torchyard, name))
        assert getattr(torchyard, name).__doc__


def test_the_version_is_the_installed_one() -> None:
    assert torchyard.__version__ == importlib.metadata.version("torchyard")
