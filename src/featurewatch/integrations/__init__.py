"""What an operator's other systems get: Prometheus rules, Grafana dashboards, notifications"""
