from bridge import demo, leave_nothing, services  # noqa: F401: fixtures
