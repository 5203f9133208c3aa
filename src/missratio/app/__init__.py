"""What is built on the library: tables, model files, the command line, the report."""
