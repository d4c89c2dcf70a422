"""Alerting rules for Prometheus, generated from the alert rules and the registries of metrics"""
