"""The description of the API, made from what is declared at the views."""
