"""Options and arguments that the commands refuse."""

from tests.cases import cases
from tests.cli.conftest import stored

NO_TIME = "Invalid value for '--since': must be a date such as 2026-11-20, or a time such as 2026-11-20T10:10:00Z"


@cases(
    ("arguments", "message"),
    [
        (["import", "--permalink", "/:name/", "."], "Invalid value for '--permalink': must be one of date, pretty,"),
        (["import", "--base-url", "a", "."], "Invalid value for '--base-url': must be an absolute http or https URL"),
        (["import", "--static", "typo", "."], "Invalid value for '--static': Directory 'typo' does not exist."),
        (["import", ""], "': must not be empty"),
        (["import", ".", ""], "': must not be empty"),
        (["export", ""], "': must not be empty"),
        (["images", "--delete"], "--delete needs --unused"),
        (["images", "--rebase", ""], "must be an absolute http or https URL"),
        (["images", "--rebase", "blog.example.org"], "must be an absolute http or https URL"),
        (["images", "--rebase", "ftp://a.example"], "must be an absolute http or https URL"),
        (["images", "--rebase", f"https://a.example/{'x' * 3000}"], "must be an absolute http or https URL"),
        (["undo", "--since", "yesterday"], NO_TIME),
        (["undo", "--since", ""], NO_TIME),
        (["undo", "--since", "2026-13-01"], NO_TIME),
    ],
)
def test_a_senseless_argument_is_refused(run, storage, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.md").write_text("A")
    status, output, error = run(*arguments)
    assert (status, output, message in error[-1]) == (2, [], True), error
    assert stored(storage) == {}
