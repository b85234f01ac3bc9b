"""What `rwq` without a command shows: where to begin, on one screen."""

# In the order in which most people need them. A test runs every command.
OVERVIEW = """\
Usage: rwq [OPTIONS] COMMAND [ARGS]...

See a queue   rwq queues                   the queues of this server
              rwq stats -q jobs            how many items in which state
              rwq ls -q jobs               the waiting items, next first
              rwq leases -q jobs           who holds what, and for how long
Take an item  rwq lease -q jobs --for 10m  print it; it is yours for 10 min
              rwq complete -q jobs ID      it is done
              rwq release -q jobs ID       it is not: return it to the queue
Clean         rwq clean light -q jobs      return what dead workers held
              rwq clean deep -q jobs       and what is in no list any more
Find out why  rwq show -q jobs ID          an item, and what happens next
              rwq doctor -q jobs           what is wrong with the queue
Mend          rwq doctor -q jobs --fix     fix what needs no decision
              rwq undo                     restore what was removed last
Add           rwq add -q jobs DATA         or -f FILE, an item a line

The queue is -q NAME or RWQ_QUEUE, the server -u URL or RWQ_URL.
rwq --help lists all commands, and rwq COMMAND --help explains one.
rwq help recipes has whole tasks, and rwq demo a tour on a throwaway server.
"""
