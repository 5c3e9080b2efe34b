"""Pages and addresses of services that outlive a test.

To load the dashboard into a new page costs more than a second of CPU, and half as much into one that has shown it from
the same address: its process is there, its files are cached and its scripts compiled.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

from playwright.sync_api import Browser, ConsoleMessage, Page, ViewportSize

from tests.support.live import Live

#: What a browser says of a refusal that the dashboard handles.
EXPECTED = "the server responded with a status of"
#: What a page is shown at unless a test says otherwise.
DESKTOP = ViewportSize(width=1440, height=900)
#: An address of the service that runs no scripts.
_BARE = "/healthz"


class Errors:
    """What the scripts of a page complain of."""

    def __init__(self, page: Page) -> None:
        self.said: list[str] = []
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("console", self._hear)

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type == "error" and EXPECTED not in message.text:
            self.said.append(message.text)


class Window:
    """A page in a browser of its own, shown to one test after the other."""

    def __init__(self, browser: Browser, url: str) -> None:
        self._url = url
        self._context = browser.new_context(base_url=url, accept_downloads=True, viewport=DESKTOP)
        self._open()

    def _open(self) -> None:
        self.page = self._context.new_page()
        self.errors = Errors(self.page)

    @contextmanager
    def used(self) -> Iterator["Window"]:
        """The page as a new one is: signed in nowhere, with nothing remembered. A test that closes it has its own."""
        yield self
        if not self.page.is_closed():
            self._tidy()
        for each in self._context.pages:
            if each is not self.page:
                each.close()
        if self.page.is_closed():
            self._open()
        self._context.clear_cookies()
        self._context.clear_permissions()
        self.errors.said.clear()

    def _tidy(self) -> None:
        self.page.unroute_all(behavior="ignoreErrors")
        self.page.mouse.move(0, 0)
        self.page.set_viewport_size(DESKTOP)
        self.page.emulate_media(color_scheme="light")
        self.page.goto(_BARE)
        self.page.evaluate("sessionStorage.clear()")
        devtools = self._context.new_cdp_session(self.page)
        devtools.send("Storage.clearDataForOrigin", {"origin": self._url, "storageTypes": "all"})
        devtools.detach()

    def close(self) -> None:
        self._context.close()


class Windows:
    """One window for each name and address, and one address for the services of each name."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._ports: dict[str, int] = {}
        self._made: dict[tuple[str, str], Window] = {}

    @contextmanager
    def served(self, name: str, serve: Callable[..., AbstractContextManager[Live]]) -> Iterator[Live]:
        """A service at the address of the last one of that name, or at another if somebody has taken it since."""
        with ExitStack() as stack:
            try:
                service = stack.enter_context(serve(port=self._ports.get(name, 0)))
            except OSError:
                service = stack.enter_context(serve(port=0))
            self._ports[name] = int(service.url.rpartition(":")[2])
            yield service

    @contextmanager
    def window(self, name: str, url: str) -> Iterator[Window]:
        if (name, url) not in self._made:
            self._made[name, url] = Window(self._browser, url)
        with self._made[name, url].used() as window:
            yield window

    def close(self) -> None:
        for each in self._made.values():
            each.close()
