PYTHON := $(or $(PYTHON),python3)
BIN = .venv/bin

.PHONY: help install postgresql run man test test-all coverage soak bench instructions check lock

help:  # list the targets
	@sed -n 's/^\([a-z-]*\):[^#]*# *\(.*\)/\1@\2/p' Makefile | while IFS=@ read -r name what; do printf 'make %-13s %s\n' "$$name" "$$what"; done

install: .venv/installed  # install blogapi and its dependencies into .venv

postgresql: .venv/postgresql  # install psycopg, for BLOGAPI_DATABASE=postgresql://…

run: .venv/installed $(wildcard .venv/postgresql)  # start the service, with blog.db in this folder
	@exec $(BIN)/blogapi serve

man: .venv/installed  # write a manual page for each command to man/
	@$(BIN)/pip install --quiet --no-deps --upgrade --target .venv-man click-man==0.6.0
	@mkdir -p man && PYTHONPATH=.venv-man $(BIN)/python -c "import sys; from click_man.core import write_man_pages; from importlib.metadata import version; from blogapi.cli import command_line as group; [group.get_command(None, name) for name in group.list_commands(None)]; write_man_pages('blogapi', group, version=version('blogapi'), target_dir='man')"

PYTEST = $(BIN)/pytest -n auto

test: .venv/tested  # run the quick tests, as you should before each commit; takes two minutes
	$(PYTEST)

test-all: .venv/tested  # run the slow tests: processes, PostgreSQL, browsers, generated clients; takes seven minutes
	$(BIN)/pytest -n $$($(BIN)/python -c 'import os; print(os.cpu_count() + 2)') --dist loadgroup -m slow  # 2 more, because slow tests spend a third of their time waiting
	$(BIN)/pytest -q --over wsgiref tests/posts/test_create.py
	$(BIN)/pytest -q --over waitress tests/images/test_images.py

API = $(addprefix tests/,api posts tags history search webhooks images markdown docs micropub)

coverage: .venv/tested  # measure the branch coverage of all tests
	$(PYTEST) -m "" --cov

soak: .venv/tested  # run all tests with up to a hundred times as many requests, kills and keys; takes an hour
	$(BIN)/pytest -m "" --soak --hypothesis-profile soak
	$(PYTEST) -q --over wsgiref $(API)
	$(PYTEST) -q --over waitress $(API)

bench: .venv/tested .venv-bench/installed  # compare the speed with plain Flask; needs wrk. POSTS=1000000 uses more posts, ENGINE=postgresql includes PostgreSQL, BASE=path compares with another checkout
	$(BIN)/python -m bench.run --posts $(or $(POSTS),1000) --engine $(or $(ENGINE),sqlite) $(if $(BASE),--base $(BASE))

instructions: .venv/tested .venv-bench/installed  # count the processor instructions of each request; needs valgrind. BASE=path compares with another checkout
	$(BIN)/python -m bench.instructions $(if $(BASE),--base $(BASE))

check: .venv/tested  # check style, formatting, imports between layers, and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/mypy

# Create .venv again if the checkout was moved or its Python was removed, because the programs in .venv contain both
# paths.
ifneq (,$(shell test -s .venv/installed && test "`cat .venv/installed`" != "$(CURDIR)" && echo moved))
AGAIN = the checkout has moved
else ifneq (,$(shell test -s .venv/installed && ! $(BIN)/python -c "import gunicorn" 2>/dev/null && echo dead))
AGAIN = its Python was removed or replaced
endif
ifdef AGAIN
$(info .venv is created again: $(AGAIN).)
.PHONY: .venv/installed
endif

# The locks include all dependencies. Without --no-deps, pip would look for newer versions of extras.
.venv/installed: requirements/pip.txt requirements/base.txt setup.cfg pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "blogapi needs Python 3.11 or newer, but $(PYTHON) is %d.%d. Install one (brew install python@3.13, or uv python install 3.13), then: make PYTHON=python3.13" % sys.version_info[:2])'
	@echo "Installing into .venv, which takes a minute ..."
	@$(PYTHON) -m venv --clear .venv
	@$(BIN)/pip install --quiet --no-deps --require-hashes -r requirements/pip.txt  # Older versions of pip take twice as long.
	@$(BIN)/pip install --quiet --no-deps --require-hashes -r requirements/base.txt
	@PYTHONWARNINGS='ignore:Editable installation' $(BIN)/pip install --quiet --no-deps --no-build-isolation -e .
	@echo "$(CURDIR)" > $@
	@$(BIN)/python -c "from blogapi.cli.doctor import python_build; print('Python', python_build())"

.venv/postgresql: .venv/installed requirements/postgresql.txt
	$(BIN)/pip install --quiet --no-deps --require-hashes -r requirements/postgresql.txt
	@touch $@

.venv/tested: .venv/installed requirements/test.txt
	$(BIN)/pip install --quiet --no-deps --require-hashes -r requirements/test.txt
	@touch $@

.venv-bench/installed: requirements/base.txt  # without psycopg, which Peewee imports if it is installed
	$(PYTHON) -m venv --clear .venv-bench
	.venv-bench/bin/pip install --quiet --no-deps --require-hashes -r requirements/base.txt
	@touch $@

# --universal, so that the locks are valid on every platform
COMPILE = .venv-lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --upgrade \
	--no-header --no-annotate setup.cfg --extra build

lock:  # lock the newest versions that setup.cfg allows
	$(PYTHON) -m venv .venv-lock
	.venv-lock/bin/pip install --quiet uv packaging
	echo pip | $(subst setup.cfg --extra build,-,$(COMPILE)) --output-file requirements/pip.txt
	$(COMPILE) --output-file requirements/base.txt
	$(COMPILE) --extra postgresql --output-file requirements/postgresql.txt
	$(COMPILE) --extra test --output-file requirements/test.txt
	.venv-lock/bin/uv pip compile --quiet --universal --python-version 3.11 --no-deps --format pylock.toml \
		requirements/base.txt | .venv-lock/bin/python requirements/wheels.py
	rm -r .venv-lock
