"""Dashboards for Grafana, generated from the registries of metrics"""
