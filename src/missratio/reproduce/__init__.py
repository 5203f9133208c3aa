"""The paper's experiments, as data and as one command."""
