from bridge import demo, services  # noqa: F401: fixtures
