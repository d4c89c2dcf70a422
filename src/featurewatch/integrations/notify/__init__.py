"""Notifications: firing alerts to Alertmanager, and every alert message to signed webhooks"""
