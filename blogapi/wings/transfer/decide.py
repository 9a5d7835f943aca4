"""What to do with a file and its post: one table for push and pull, and for their dry runs."""

from enum import Enum, auto
from typing import Any


class Side(Enum):
    """A file or a post, compared with what is recorded of both. Without a record, what exists has changed."""

    ABSENT = auto()
    SAME = auto()
    CHANGED = auto()
    REWOUND = auto()  # a post that is no successor of the recorded one: a backup was restored


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
TABLE = {  # (the file, the post): the action
    (ABSENT, ABSENT): Action.FORGET,
    (ABSENT, SAME): Action.TRASH,
    (ABSENT, CHANGED): CONFLICT,
    (ABSENT, REWOUND): CONFLICT,
    (SAME, ABSENT): Action.UNLINK,
    (SAME, SAME): Action.NOTHING,
    (SAME, CHANGED): Action.WRITE,
    (SAME, REWOUND): CONFLICT,
    (CHANGED, ABSENT): CONFLICT,
    (CHANGED, SAME): Action.SEND,
    (CHANGED, CHANGED): CONFLICT,
    (CHANGED, REWOUND): CONFLICT,
}
UNRECORDED = {
    (ABSENT, ABSENT): Action.NOTHING,
    (ABSENT, CHANGED): Action.WRITE,
    (CHANGED, ABSENT): Action.SEND,
    (CHANGED, CHANGED): CONFLICT,
}
OTHERS = {  # what the other command would do: what is said of the file, and the command
    Action.SEND: ("changed here", "push sends it"),
    Action.TRASH: ("gone here", "push --delete moves its post to the trash, pull --theirs writes it again"),
    Action.WRITE: ("changed there", "pull writes it"),
    Action.UNLINK: ("gone there", "pull --delete removes the file, push --recreate creates the post again"),
}
WAYS_OUT = "push --overwrite keeps the file, pull --theirs the post"
REASONS = {
    (ABSENT, CHANGED): "it is gone here, and has changed there: pull --theirs writes it",
    (ABSENT, REWOUND): "it is gone here, and its post is older than it was: pull --theirs writes it",
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
    return (TABLE if base else UNRECORDED)[local, remote]


def reason(local: Side, base: Any, remote: Side, there: Any) -> str:
    """Return why a file and the post `there` conflict, and how the user can go on."""
    if not base:
        return f"the post {there['slug']} differs from the file: {WAYS_OUT}" if there else ""
    if not there and remote is REWOUND:
        return LOST
    return REASONS.get((local, remote)) or f"the post is older than it was: {WAYS_OUT}"
