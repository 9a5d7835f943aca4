"""Moving blogs: imports from files and exports of other programs, and the export to a folder."""
