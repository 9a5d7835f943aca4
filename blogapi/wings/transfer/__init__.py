"""Import posts from files and from exports of other programs, and export posts to a folder."""
