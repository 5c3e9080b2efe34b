"""Accounts of nodes in Redis: each reaches the keys of its own queue, and nothing else.

The service's own account makes them (``ACL SETUSER``). They are named after the node's token and their passwords follow
from that and the installation's secret, so that nothing of them is stored, and a Redis that has forgotten them is told
again when the node registers, which it does every half a minute.
"""

import hashlib
import hmac
import logging
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any, Final

from kombu.exceptions import OperationalError
from redis.exceptions import RedisError, ResponseError

from service.infra.dispatch import node_key_prefix, publisher
from torchyard.network.login import login, with_login, written

#: What a consumer of any version of Celery needs, on the keys of its own: no command that sees the names of others'
#: keys, or changes the server. Scripts stay: Celery's transport releases the lock by which it restores unacknowledged
#: messages by one (redis-py's `Lock`). What a script does is checked against the same keys and commands.
RULES: Final = (
    *("-@all", "+@read", "+@write", "+@transaction", "+@connection", "-@dangerous", "-@scripting"),
    *("-scan", "-randomkey", "-dbsize"),
    *("+eval", "+evalsha", "+script|load"),
)

#: Raised where Redis does not answer.
_AWAY: Final = (OperationalError, RedisError, OSError)

_log = logging.getLogger(__name__)


class BrokerAccounts:
    """The nodes' accounts of one installation; calls wait for Redis two seconds at most, twice."""

    def __init__(self, broker_url: str, installation: str, secret: str) -> None:
        self._broker_url = broker_url
        self._installation = installation
        self._secret = secret.encode()
        #: Why nodes have the service's own account; None while they have theirs.
        self.shared: str | None = None if login(broker_url) else "Redis asks for no password"
        self._lock = threading.Lock()

    def url(self, node: str, token_id: str) -> str:
        """Return the URL by which the holder of a node token reaches its queue, and see to it that Redis knows it.

        A Redis that cannot be reached now is told later; from one that refuses the node gets the service's own URL.
        """
        if not login(self._broker_url):
            return self._broker_url
        name, password = self._name(token_id), self._password(node, token_id)
        keys = f"~{node_key_prefix(self._installation, node)}*"
        try:
            with self._redis() as redis:
                redis.execute_command("ACL", "SETUSER", name, "reset", "on", f">{password}", keys, *RULES)
        except ResponseError as error:
            self._share(f"Redis lets the service make no accounts for nodes ({error})")
            return self._broker_url
        except _AWAY as error:
            _log.warning(
                "Redis was not told of the account of node %s, and is at its next registration: %s", node, error
            )
        else:
            self.shared = None
        return self._broker_url if self.shared else with_login(self._broker_url, written(name, password))

    def keep(self, token_ids: Collection[str]) -> None:
        """Remove the accounts of all node tokens but these, with their connections; a Redis that is away has none."""
        if self.shared:
            return
        kept = set(map(self._name, token_ids))
        try:
            with self._redis() as redis:
                found = (name.decode() for name in redis.execute_command("ACL", "USERS"))
                gone = [name for name in found if name.startswith(self._name("")) and name not in kept]
                if gone:
                    redis.execute_command("ACL", "DELUSER", *gone)
        except (*_AWAY, ResponseError) as error:
            _log.warning("Redis was not told which nodes' accounts have ended, and is at the next cleaning: %s", error)

    def _name(self, token_id: str) -> str:
        return f"torchyard-{self._installation}-{token_id}"

    def _password(self, node: str, token_id: str) -> str:
        return hmac.new(self._secret, f"redis {token_id} {node}".encode(), hashlib.sha256).hexdigest()

    def _share(self, why: str) -> None:
        with self._lock:
            said, self.shared = self.shared, why
        if said != why:
            _log.warning(
                "%s: all nodes get the service's own password, and may read and write each other's queues", why
            )

    @contextmanager
    def _redis(self) -> Iterator[Any]:
        with publisher(self._broker_url, "") as app, app.connection_for_write() as connection:
            yield connection.default_channel.client
