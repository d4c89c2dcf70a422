"""The data pipeline on Spark: fills a lake of Delta tables from the topics, with the live fold.

Bronze holds the messages as they came, silver typed rows, gold what the fold derives from them.
"""
