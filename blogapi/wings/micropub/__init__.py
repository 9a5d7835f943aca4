"""Micropub (W3C Recommendation of 23 May 2017): posts and images from writing programs.

Outside /v1, with two rules of its own: `error` is a word, and unknown properties are ignored, named in the answer.
"""
