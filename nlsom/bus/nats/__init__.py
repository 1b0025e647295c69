"""The bus across machines, on NATS.

A turn goes from the scheduler's process to a worker that hosts the member, and its outcome comes back. What
was sent may be lost, delayed or sent twice; keys and numbers make sure that one outcome counts. How it goes
over the wire stands in `docs/scaling.md`.
"""

from nlsom.bus.nats.bus import NatsBus

__all__ = ["NatsBus"]
