"""What is counted while a hub runs: requests by route, questions by outcome, jobs. No label is a person, a data set or a value.

The numbers are for anyone who keeps the hub running: /metrics answers on loopback or to a bearer token.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Meter:
    """The counters of one process.

    >>> meter = Meter()
    >>> meter.request("/api/v1/questions", "POST", 200, 0.02)
    >>> b'cloister_requests_total{method="POST",route="/api/v1/questions",status="200"} 1.0' in meter.text()
    True
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "cloister_requests", "Requests that were answered", ["route", "method", "status"], registry=self.registry
        )
        self._seconds = Histogram(
            "cloister_request_seconds", "How long answers took", ["route"], buckets=_SECONDS, registry=self.registry
        )
        self._kinds: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        self._questions = Counter("cloister_questions", "Questions, by how they ended", ["outcome"], registry=self.registry)
        self._jobs = Gauge("cloister_jobs", "Jobs, by state", ["state"], registry=self.registry)

    def request(self, route: str, method: str, status: int, seconds: float) -> None:
        """One request. `route` is the template of the address, never the address itself."""
        kind = (route, method, status)
        known = self._kinds.get(kind)
        if known is None:  # as many as there are routes, methods and states
            known = self._kinds[kind] = self._requests.labels(route, method, str(status)), self._seconds.labels(route)
        known[0].inc()
        known[1].observe(seconds)

    def question(self, outcome: str) -> None:
        """One question: answered, repeated, refused, denied, over-budget or failed."""
        self._questions.labels(outcome).inc()

    def jobs(self, state: str, number: int) -> None:
        """How many jobs are in a state."""
        self._jobs.labels(state).set(number)

    def text(self) -> bytes:
        """Everything, in the form that Prometheus reads."""
        return generate_latest(self.registry)
