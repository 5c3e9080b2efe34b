import pytest
from kombu.utils.url import url_to_parts

from torchyard.network.login import login, with_login, written

URLS = (
    "redis://host:6379/0",
    "redis://:secret@host:6379/0",
    "rediss://name:se%40cret@[::1]/1?ssl_cert_reqs=required",
    "redis+socket:///run/torchyard/redis.sock?virtual_host=2",
    "redis+socket://:secret@/run/redis.sock",
)


@pytest.mark.parametrize("url", URLS)
def test_only_the_login_of_a_url_changes(url: str) -> None:
    found = login(url)
    assert with_login(url, found) == url
    assert login(with_login(url, "")) == ""
    changed = with_login(url, written("tor:ch/yard@", "p@ss:/?#word"))
    before, after = url_to_parts(url), url_to_parts(changed)
    assert (after.username, after.password) == ("tor:ch/yard@", "p@ss:/?#word")
    assert after._replace(username=None, password=None) == before._replace(username=None, password=None)
    assert with_login(changed, found) == url


def test_the_login_is_what_stands_before_the_host() -> None:
    assert [login(url) for url in URLS] == ["", ":secret", "name:se%40cret", "", ":secret"]
