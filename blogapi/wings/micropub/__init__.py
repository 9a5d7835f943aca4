"""Receive posts and images from writing programs over Micropub (W3C Recommendation of 23 May 2017).

Two rules differ from /v1. The `error` in a response is one of Micropub's error codes. Unknown properties are not an
error: the response lists them as ignored.
"""
