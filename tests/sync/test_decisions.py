"""The table that says what a push and a pull do with a file and its post."""

from blogapi.wings.sync.compare import ABSENT, CHANGED, REWOUND, SAME, Action, Side, decide, reason
from tests.cases import cases

TABLE = {
    # the file: the actions for a post that is gone, as recorded, changed, or no successor of the recorded one
    ABSENT: "FORGET TRASH CONFLICT CONFLICT",
    SAME: "UNLINK NOTHING WRITE CONFLICT",
    CHANGED: "CONFLICT SEND CONFLICT CONFLICT",
}
CELLS = [(local, remote, name) for local, row in TABLE.items() for remote, name in zip(Side, row.split(), strict=True)]


@cases(("local", "remote", "name"), CELLS)
def test_each_pair_has_one_action(local, remote, name):
    assert decide(local, remote) is Action[name]
    assert reason(local, remote, {"id": "1"}, {"slug": "a"}) or name != "CONFLICT"


@cases("remote", [SAME, CHANGED, REWOUND])
@cases("local", [SAME, CHANGED])
def test_sides_that_say_the_same_are_recorded_unless_the_file_lacks_what_has_changed(local, remote):
    assert decide(local, remote, alike=True) is Action.RECORD
    assert decide(local, remote, alike=True, lacks=True) is Action.WRITE
