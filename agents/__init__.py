"""What is said live: the Faust app, one agent an input topic, and what runs beside them."""
