"""Prometheus metrics."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from nlsom.event import Abstained, Event, Spoke
from nlsom.verdict import Verdict

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)


class Metrics:
    """The metrics of one server, in their own registry."""

    content_type = "text/plain; version=0.0.4; charset=utf-8"

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._mindstorms = Counter(
            "nlsom_mindstorms", "Mindstorms that have ended.", ["society", "ended"], registry=registry
        )
        self._turns = Counter("nlsom_turns", "Turns that were answered.", ["society"], registry=registry)
        self._abstentions = Counter(
            "nlsom_abstentions", "Turns that were not answered.", ["society"], registry=registry
        )
        self._tokens = Counter(
            "nlsom_tokens", "Tokens of members' models.", ["society", "kind"], registry=registry
        )
        self._seconds = Histogram(
            "nlsom_mindstorm_seconds",
            "From the first turn of a mindstorm to its verdict.",
            ["society"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._requests = Counter("nlsom_requests", "HTTP requests.", ["route", "status"], registry=registry)
        self._request_seconds = Histogram(
            "nlsom_request_seconds",
            "From request to the end of its response.",
            ["route"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.running = Gauge("nlsom_running", "Mindstorms that are running.", registry=registry)
        self.waiting = Gauge("nlsom_queue", "Mindstorms in the queue.", registry=registry)

    def event(self, society: str, event: Event) -> None:
        """Counts a turn or an abstention. Replies reused from an earlier run are not counted again."""
        if isinstance(event, Spoke) and not event.again:
            self._turns.labels(society).inc()
            usage = event.message.said.usage
            self._tokens.labels(society, "prompt").inc(usage.prompt_tokens)
            self._tokens.labels(society, "cached").inc(usage.cached_tokens or 0)
            self._tokens.labels(society, "completion").inc(usage.completion_tokens)
        elif isinstance(event, Abstained):
            self._abstentions.labels(society).inc()

    def ended(self, society: str, how: str, verdict: Verdict | None) -> None:
        """Counts the end of a mindstorm."""
        self._mindstorms.labels(society, how).inc()
        if verdict is not None:
            self._seconds.labels(society).observe(verdict.usage.seconds)

    def request(self, route: str, status: int, seconds: float) -> None:
        """Counts a request. `route` is the route's pattern, not its path, which has unbounded values."""
        self._requests.labels(route, str(status)).inc()
        self._request_seconds.labels(route).observe(seconds)

    def text(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self._registry)
