"""What the service counts about itself, for Prometheus. Names and units in one place."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
_COMMANDS = (1, 2, 4, 8, 16, 32, 64)


class Telemetry:
    """The metrics of one process, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._turn_seconds = Histogram(
            "tenure_writer_turn_seconds",
            "Time of one turn of the log writer, commit included",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._turn_commands = Histogram(
            "tenure_writer_turn_commands",
            "Commands decided in one turn",
            buckets=_COMMANDS,
            registry=self.registry,
        )
        self._reopened = Counter(
            "tenure_writer_reopened",
            "Times the writer lost its connection",
            registry=self.registry,
        )
        self._requests = Counter(
            "tenure_http_requests",
            "HTTP answers by operation and status",
            ["operation", "status"],
            registry=self.registry,
        )
        self._answers: dict[tuple[str, int], Counter] = {}
        self._swept = Counter(
            "tenure_swept",
            "Things that sweeps settled, by sweep",
            ["sweep"],
            registry=self.registry,
        )
        self._sweep_failures = Counter(
            "tenure_sweep_failures",
            "Sweeps that failed, by sweep",
            ["sweep"],
            registry=self.registry,
        )
        self.stalled_seconds = Gauge(
            "tenure_writer_stalled_seconds",
            "How long commands have been waiting without any being committed",
            registry=self.registry,
        )
        self.position = Gauge(
            "tenure_log_position", "The log's head as last seen", registry=self.registry
        )

    def turn(self, commands: int, seconds: float) -> None:
        self._turn_commands.observe(commands)
        self._turn_seconds.observe(seconds)

    def reopened(self) -> None:
        self._reopened.inc()

    def request(self, operation: str, status: int) -> None:
        counter = self._answers.get((operation, status))
        if counter is None:
            counter = self._requests.labels(operation, str(status))
            self._answers[operation, status] = counter
        counter.inc()

    def swept(self, sweep: str, count: int) -> None:
        self._swept.labels(sweep).inc(count)

    def sweep_failed(self, sweep: str) -> None:
        self._sweep_failures.labels(sweep).inc()
