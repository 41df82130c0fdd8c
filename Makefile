# Every target installs what it needs and is missing, and may be run again at any time.
.DEFAULT_GOAL := help
.PHONY: help demo build install test test-quick lint fault soak sanitize bench test-browser screenshots setup setup-tests setup-browser

PREFIX ?= /usr/local
DESTDIR ?=

# One file that needs no Swift installation, and starts in half the time.
RELEASE := -c release --static-swift-stdlib
SWIFT_SOURCES := Sources providers Tests Package.swift
# Tests have limits of time, which more of them at once than the machine has cores for would run into.
WIDTH := SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH=8
# What measures runs alone.
SPEED := Tests/browser/test_speed.py
BROWSER_TESTS = .venv/bin/python -m pytest -n 3 Tests/browser --ignore $(SPEED) && .venv/bin/python -m pytest $(SPEED)
# Fast tests: no killing, no built commands, no foreign clients.
QUICK := --skip '^FaultTests\.' --skip '^CommandTests\.'
# No built commands, no foreign clients.
SANITIZED := --skip '^CommandTests\.' --skip '^SoundnessTests\.'

help: ## Say what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: setup ## Build Ferry and start everything on this machine
	swift build $(RELEASE) --product ferry
	.build/release/ferry demo --config config/demo.yaml

build: setup ## Build ferry and ferry-bench into .build/release
	swift build $(RELEASE) --product ferry
	swift build $(RELEASE) --product ferry-bench

install: build ## Install into PREFIX (default /usr/local), below DESTDIR
	install -d '$(DESTDIR)$(PREFIX)/bin' '$(DESTDIR)$(PREFIX)/share/ferry'
	install -m 755 .build/release/ferry '$(DESTDIR)$(PREFIX)/bin/ferry'
	install -m 644 config/ferry.example.yaml config/demo.yaml config/ferry.schema.json LICENSE \
	  '$(DESTDIR)$(PREFIX)/share/ferry/'

test: setup-browser lint ## Check the style, build with warnings as errors, run all tests, those in a browser among them
	swift build --build-tests
	$(WIDTH) swift test --skip-build --parallel --skip '^FaultTests\.'
	$(WIDTH) swift test --skip-build --parallel --filter '^FaultTests\.'
	FERRY_MEASURE=1 swift test --skip-build --filter MemoryTests
	.venv/bin/python -m pytest Tests/peers
	$(BROWSER_TESTS)

test-quick: setup ## Run the unit tests
	swift build --build-tests
	$(WIDTH) swift test --skip-build --parallel $(QUICK)

lint: ## Check the style
	swift format lint --strict --recursive $(SWIFT_SOURCES)

fault: setup ## Inject more than 10,000 faults and write Guarantees.md
	swift build --build-tests
	FERRY_SEEDS=5000 FERRY_GUARANTEES='$(CURDIR)/Guarantees.md' $(WIDTH) \
	  swift test --skip-build --filter '^FaultTests\.'

soak: ## Send a million messages through a relay, or FERRY_SOAK of them
	@tools/setup packages soak
	swift build $(RELEASE) --product ferry
	swift build --build-tests
	FERRY_BIN='$(CURDIR)/.build/release/ferry' FERRY_SOAK=$${FERRY_SOAK:-1000000} swift test --skip-build --filter SoakTests

sanitize: setup ## Run the unit, contract and fault tests under the thread and address sanitizers
	$(WIDTH) swift test --sanitize=thread -Xswiftc -DTSAN --scratch-path .build-tsan $(SANITIZED)
	LSAN_OPTIONS=suppressions=tools/leaks.txt:print_suppressions=0 $(WIDTH) \
	  swift test --sanitize=address --scratch-path .build-asan $(SANITIZED)

bench: setup ## Measure; prints JSON
	swift build $(RELEASE) --product ferry
	swift build $(RELEASE) --product ferry-bench
	.build/release/ferry-bench

test-browser: setup-browser ## Test the pages in a real browser
	swift build --product ferry
	$(BROWSER_TESTS)

screenshots: setup-browser ## Take pictures of the pages, into screenshots/
	swift build --product ferry
	.venv/bin/python Tests/browser/screenshots.py screenshots
	.venv/bin/python Tests/browser/console_screenshots.py screenshots

setup:
	@tools/setup packages

setup-tests:
	@tools/setup packages python

setup-browser:
	@tools/setup packages python browser
