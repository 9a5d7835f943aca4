"""Micropub (W3C Recommendation of 23 May 2017): posts and images from writing programs.

It is outside /v1, and differs from it in two rules: `error` is a word, and unknown properties are ignored and listed.
"""
