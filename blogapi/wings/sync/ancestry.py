"""Whether a post descends from the recorded one, or a backup of the database was restored since."""

from collections.abc import Collection
from functools import cached_property

from blogapi.wings.sync.matching import PostList
from blogapi.wings.sync.remote import KEPT_REVISIONS, Post, Remote, RemoteRevision
from blogapi.wings.sync.state import Entry, fingerprint, identity


class Ancestry:
    """Tells whether posts descend from their recorded versions.

    A recorded version that is still current is a proof: no older backup was restored since it was seen. So the database
    still has every version that was written before it and seen no earlier.
    """

    def __init__(self, entries: Collection[Entry], posts: PostList, remote: Remote):
        self.entries, self.posts, self.remote = entries, posts, remote
        self._proofs: dict[str, str] = {}  # the latest `updated_at` of those seen at a time, by that time
        for entry in filter(posts.is_as_recorded, entries):
            self._add_proof(entry)

    def _add_proof(self, entry: Entry) -> None:
        self._proofs[entry["seen"]] = max(self._proofs.get(entry["seen"], ""), entry["updated_at"])

    def _is_proven(self, entry: Entry) -> bool:
        proofs = self._proofs.items()
        return any(seen <= entry["seen"] and time > entry["updated_at"] for seen, time in proofs)

    def is_successor(self, entry: Entry, current: Entry | None, ask: bool) -> bool:
        """Return whether a post descends from the recorded one, or was deleted after it; `ask` the service if need be.

        It does not if another version was current from before the recorded one was written until after it was seen.
        """
        if current and current["updated_at"] < entry["updated_at"]:
            return False
        if self._is_proven(entry) or not ask:
            return True
        if not current:
            trashed = self.remote.trashed(entry["id"])
            return trashed is not None and identity(trashed) == identity(entry)
        revisions = self.remote.revisions(entry["id"])
        if revisions is None:
            return not self._may_be_restored
        if any(each.begun == entry["updated_at"] for each in revisions):
            return self.recorded_version(entry, revisions) is not None
        if len(revisions) >= KEPT_REVISIONS and all(each.begun > entry["updated_at"] for each in revisions):
            return False  # The version may be gone from the history, or have been lost.
        return not any(each.begun < entry["updated_at"] and entry["seen"] < each.ended for each in revisions)

    @cached_property
    def _may_be_restored(self) -> bool:
        """Whether a restored backup may be the reason that a post is gone or older than recorded."""
        found = ((entry, self.posts.find(entry)) for entry in self.entries)
        lost = (entry for entry, post in found if not post or post["updated_at"] < entry["updated_at"])
        return not all(map(self._is_proven, lost))

    def recorded_version(self, entry: Entry, revisions: list[RemoteRevision]) -> Post | None:
        """Return the version of a post that is recorded, if it is among these revisions."""
        for revision in revisions:
            if revision.begun == entry["updated_at"]:
                found = self.remote.post(f"{entry['id']}/revisions/{revision.number}")
                if found and fingerprint(found[0]) == entry["fingerprint"]:
                    self._add_proof(entry)
                    return found[0]
        return None
