"""What to do with a file and its post: one table for push and pull, and for their dry runs."""

from enum import Enum, IntEnum, auto
from typing import Any


class Side(IntEnum):
    """A file or a post, compared with what is recorded of both. Without a record, what exists has changed."""

    ABSENT = 0
    SAME = 1
    CHANGED = 2
    REWOUND = 3  # a post that does not descend from the recorded one: a backup was restored


class Action(Enum):
    """The only step that loses nothing; a push or a pull leaves the other command's work alone."""

    NOTHING = auto()
    RECORD = auto()  # both sides say the same
    FORGET = auto()
    SEND = auto()  # push, from here on
    TRASH = auto()
    WRITE = auto()  # pull, from here on
    UNLINK = auto()
    CONFLICT = auto()


ABSENT, SAME, CHANGED, REWOUND = Side
CONFLICT = Action.CONFLICT
TABLE = {  # a row for each state of the file, a column for each of the post: absent, same, changed, rewound
    ABSENT: (Action.FORGET, Action.TRASH, CONFLICT, CONFLICT),
    SAME: (Action.UNLINK, Action.NOTHING, Action.WRITE, CONFLICT),
    CHANGED: (CONFLICT, Action.SEND, CONFLICT, CONFLICT),
}
UNRECORDED = {
    ABSENT: (Action.NOTHING, CONFLICT, Action.WRITE, CONFLICT),
    CHANGED: (Action.SEND, CONFLICT, CONFLICT, CONFLICT),
}
HINTS = {  # what the other command would do: what is said of the file, and the command
    Action.SEND: ("changed here", "push sends it"),
    Action.TRASH: ("gone here", "push --delete moves its post to the trash, pull --theirs writes it again"),
    Action.WRITE: ("changed there", "pull writes it"),
    Action.UNLINK: ("gone there", "pull --delete removes the file, push --recreate creates the post again"),
}
WAYS_OUT = "push --overwrite keeps the file, pull --theirs the post"
BACK = "its post went back to an earlier version, as if a backup was restored"
REASONS = {
    (ABSENT, CHANGED): "it is gone here, and has changed there: pull --theirs writes it",
    (ABSENT, REWOUND): f"it is gone here, and {BACK}: pull --theirs writes it",
    (CHANGED, ABSENT): "it has changed here, and its post is gone: push --recreate creates it again",
    (CHANGED, CHANGED): f"it has changed on both sides: {WAYS_OUT}",
}
LOST = (
    "its post is gone and not in the trash (deleted for good, or a backup was restored):"
    " push --recreate creates it again, or delete the file"
)


def decide(local: Side, base: Any, remote: Side, alike: bool = False, lacks: bool = False) -> Action:
    """Return what to do. `base` is the record of both, if any.

    `alike`: both sides say the same. `lacks`: the file matches only because it omits the field that changed.
    """
    if alike:
        return Action.WRITE if lacks else Action.RECORD
    return (TABLE if base else UNRECORDED)[local][remote]


def reason(local: Side, base: Any, remote: Side, post: Any) -> str:
    """Return why a file and a post conflict, and how the user can go on."""
    if not base:
        return f"the post {post['slug']} differs from the file: {WAYS_OUT}" if post else ""
    return REASONS.get((local, remote)) or (f"{BACK}: {WAYS_OUT}" if post else LOST)
