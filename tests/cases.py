"""Tables of cases that share one database: one test, not one for each case."""

import inspect
from functools import wraps


def cases(names, values):
    """Run a test for each value of a name, or each tuple of values of several names, with the same fixtures.

    It fails with the errors of all cases that fail.
    The arguments are those of `pytest.mark.parametrize`, which is for cases that each need a database of their own.
    """
    names = (names,) if isinstance(names, str) else names
    table = [dict(zip(names, value if len(names) > 1 else (value,), strict=True)) for value in values]
    assert table, names

    def decorate(test):
        @wraps(test)
        def run(**fixtures):
            __tracebackhide__ = True
            errors = []
            for case in table:
                try:
                    test(**fixtures, **case)
                except Exception as error:
                    error.add_note(f"in the case {case!r:.500}")
                    errors.append(error)
            if errors:
                raise errors[0] if len(errors) == 1 else ExceptionGroup(f"of {len(table)} cases", errors)

        parameters = inspect.signature(test).parameters.values()
        run.__signature__ = inspect.Signature([each for each in parameters if each.name not in names])
        return run

    return decorate
