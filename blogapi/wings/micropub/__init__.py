"""Micropub (W3C Recommendation of 23 May 2017): posts and images from writing programs.

Two rules differ from /v1: `error` is a word, and unknown properties are ignored and listed.
"""
