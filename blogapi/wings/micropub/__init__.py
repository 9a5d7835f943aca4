"""Micropub (W3C Recommendation of 23 May 2017): posts and images from writing programs.

It is outside /v1 and has two rules of its own: `error` is a word, and unknown properties are ignored and listed.
"""
