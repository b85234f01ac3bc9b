"""What rwq tells about itself besides the help of its commands: an overview, topics, recipes.

Texts may have `code` between backquotes, for the pages in `docs`; a terminal shows them without.
"""
