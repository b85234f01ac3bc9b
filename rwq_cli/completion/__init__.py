"""Shell completion: what there is to complete, and the script of each shell made from it."""
