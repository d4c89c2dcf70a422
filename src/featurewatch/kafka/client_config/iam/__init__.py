"""Logins to Amazon MSK with AWS credentials: AWS_MSK_IAM, and MSK's signed token by OAUTHBEARER."""
