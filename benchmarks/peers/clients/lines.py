"""Lines of JSON on stdin and stdout. Standard library only: it runs in the environments of peers."""

import json
import os
import sys

# Libraries print, too: what stdout was is for answers alone. So this comes before their imports.
answers = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)


def serve(client: object) -> None:
    """Call the client's methods until stdin ends."""
    answers.write(json.dumps({"answer": "ready"}) + "\n")
    for line in sys.stdin:
        name, *words = json.loads(line)
        try:
            told = {"answer": str(getattr(client, name)(*words))}
        except Exception as error:  # noqa: BLE001  it is told to the one who asked
            told = {"error": f"{type(error).__name__}: {str(error)[:200]}"}
        answers.write(json.dumps(told) + "\n")
