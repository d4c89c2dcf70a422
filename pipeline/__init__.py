"""The data pipeline on Spark: the topics into a lake of Delta tables, by the same fold as live.

Bronze holds the topics as they came, silver typed changes, gold what the fold says of them.
"""
