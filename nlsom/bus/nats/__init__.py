"""The bus across machines, on NATS.

A turn goes from the scheduler's process to a worker that hosts the member, and its outcome comes back.
Messages may be lost, delayed or sent twice; keys and numbers make sure that exactly one outcome counts.
`docs/scaling.md` describes the protocol.
"""

from nlsom.bus.nats.bus import NatsBus

__all__ = ["NatsBus"]
