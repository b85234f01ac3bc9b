"""From what the user typed, piped or wrote into a file to what the core takes."""
