"""The service: settings, the log writer, HTTP, workers, the command line."""
