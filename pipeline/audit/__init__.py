"""The audit: do the live outputs agree with what the lake recomputes?"""
