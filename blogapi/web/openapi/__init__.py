"""The description of the API, from the declarations at the views."""
