"""What to do with a file and its post: one table for push and pull, and for their dry runs."""

from collections.abc import Mapping
from enum import Enum, auto


class Side(Enum):
    """The state of a file or a post, compared with what is recorded. Without a record, what exists has changed."""

    ABSENT = auto()
    SAME = auto()
    CHANGED = auto()
    REWOUND = auto()  # a post that does not descend from the recorded one: a backup was restored


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

RECORDED = {  # for each state of the file, what to do for each state of its post
    ABSENT: {ABSENT: Action.FORGET, SAME: Action.TRASH, CHANGED: Action.CONFLICT, REWOUND: Action.CONFLICT},
    SAME: {ABSENT: Action.UNLINK, SAME: Action.NOTHING, CHANGED: Action.WRITE, REWOUND: Action.CONFLICT},
    CHANGED: {ABSENT: Action.CONFLICT, SAME: Action.SEND, CHANGED: Action.CONFLICT, REWOUND: Action.CONFLICT},
}
UNRECORDED = {
    ABSENT: {ABSENT: Action.NOTHING, CHANGED: Action.WRITE},
    CHANGED: {ABSENT: Action.SEND, CHANGED: Action.CONFLICT},
}
HINTS = {  # for actions of the other command: the outcome for the file, and which command acts
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


def decide(local: Side, remote: Side, *, is_recorded: bool, alike: bool = False, lacks: bool = False) -> Action:
    """Return what to do with a file, whose state is `local`, and its post.

    `alike`: both sides say the same. `lacks`: the file matches only because it omits the field that changed.
    """
    if alike:
        return Action.WRITE if lacks else Action.RECORD
    return (RECORDED if is_recorded else UNRECORDED)[local][remote]


def reason(local: Side, remote: Side, entry: Mapping | None, post: Mapping | None) -> str:
    """Return why a file and its post conflict, and how the user can go on; `entry` is what is recorded of them."""
    if not entry:
        return f"the post {post['slug']} differs from the file: {WAYS_OUT}" if post else ""
    return REASONS.get((local, remote)) or (f"{BACK}: {WAYS_OUT}" if post else LOST)
