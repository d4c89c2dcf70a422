"""Compares the model with Kafka's own controller classes: questions, answers and differences.

Pure: a shell puts the questions to a release's classes.
"""
