"""The notifications of a running process: who reads the alerts, and who sends them where"""
