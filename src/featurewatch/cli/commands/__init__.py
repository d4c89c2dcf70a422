"""The commands of ``featurewatch``, one module or package each."""
