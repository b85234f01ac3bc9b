"""Shell completion: a script for each shell, generated from the commands and a template."""
