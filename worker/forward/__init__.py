"""Bringing what an attempt leaves on the node's disk to the service.

The attempt folder is the spool: nothing is held in memory that is not on disk, and how far the service has got is
the service's own knowledge (its *mark*), learnt from its answers. So a worker that starts again asks for the marks
and goes on; nothing is missing and nothing is doubled.

Each forwarder has a `pump` that does a bounded piece of work and says whether more is waiting. It raises
`UnavailableError` when the service is away and `RequestRefusedError` when the service does not want what it was sent.
"""
