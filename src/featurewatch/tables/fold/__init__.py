"""The fold: one pure function from an image and an event to the next image."""
