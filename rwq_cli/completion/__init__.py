"""Shell completion: a script for each shell, made from the commands and a template."""
