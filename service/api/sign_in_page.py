"""Refusals of a sign-in at a provider, as a page: a browser is led there, and nobody reads JSON."""

import re
from collections.abc import Sequence
from html import escape

from fastapi import Request, Response
from fastapi.responses import HTMLResponse

from service.api.problems import headers_of
from service.errors import ProblemError
from torchyard import problems

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Sign-in refused · TorchYard</title>
<link rel="icon" href="/mark.svg">
<style>
:root {{ color-scheme: light dark; --ground: #eef1ee; --card: #fbfcfa; --ink: #17211e; --soft: #4a5853; --line: #d3dbd6;
  --accent: #0a6b5a; --on: #ffffff; }}
@media (prefers-color-scheme: dark) {{ :root {{ --ground: #0e1413; --card: #151d1b; --ink: #e3ebe7; --soft: #a3b3ac;
  --line: #26322e; --accent: #5fcfb0; --on: #06231c; }} }}
body {{ margin: 0; min-height: 100vh; display: grid; place-items: center; background: var(--ground); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }}
main {{ width: min(480px, calc(100vw - 32px)); box-sizing: border-box; padding: 32px; background: var(--card);
  border: 1px solid var(--line); border-radius: 14px; overflow-wrap: anywhere; }}
h1 {{ font-size: 1.45rem; margin: 12px 0; }}
dl {{ margin: 0 0 20px; }} dt {{ color: var(--soft); font-size: 0.9rem; }} dd {{ margin: 0 0 12px; }}
a {{ display: block; padding: 9px; text-align: center; background: var(--accent); color: var(--on); border-radius: 8px;
  text-decoration: none; font-weight: 600; }}
</style>
</head>
<body>
<main>
<img src="/mark.svg" alt="" width="44" height="44">
<h1>You are not signed in</h1>
<dl>{rows}</dl>
<a href="/">Back to the sign-in</a>
</main>
</body>
</html>
"""
_CODE = re.compile(r"`([^`]*)`")


def refuse(request: Request, refusal: ProblemError, who: Sequence[str], contact: str | None) -> Response:
    """Return the page that says who somebody is, why they do not come in, and whom to ask.

    Programs, which ask for no page, get the refusal raised as it is.
    """
    if "text/html" not in request.headers.get("accept", ""):
        raise refusal
    rows = [("Why", refusal.detail), ("Whom to ask", contact or "an administrator of this box")]
    if who:
        rows.insert(0, ("You are", " · ".join(who)))
    shown = "".join(f"<dt>{name}</dt><dd>{_html(text)}</dd>" for name, text in rows)
    status = problems.KINDS[refusal.kind].status
    headers = {"Cache-Control": "no-store", **headers_of(refusal)}
    return HTMLResponse(_PAGE.format(rows=shown), status, headers)


def _html(text: str) -> str:
    return _CODE.sub(r"<code>\1</code>", escape(text))
