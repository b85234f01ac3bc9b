"""From a report to bytes: tables, plain lines, JSON, CSV, and the line that shows progress."""
