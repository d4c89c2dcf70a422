"""Output for other systems of operators: Prometheus rules, Grafana dashboards, notifications"""
