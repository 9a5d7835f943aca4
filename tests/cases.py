"""Tables of cases that share one database: one test, not one for each case."""

import inspect
from functools import wraps


def cases(names, *rows):
    """Run a test for each row of a table with these names, or for each value of a single name, with the same fixtures.

    The test fails with the errors of all failing cases. The rows, or values, can also be given as one iterable.
    Use `pytest.mark.parametrize` for cases that each need a database of their own.
    """
    if isinstance(names, str):
        (values,) = rows
        names, rows = (names,), [(value,) for value in values]
    elif not isinstance(rows[0], tuple):
        (rows,) = rows
    table = [dict(zip(names, row, strict=True)) for row in rows]
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
