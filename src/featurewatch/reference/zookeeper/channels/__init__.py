"""The connections of a controller to the brokers, one for each."""
