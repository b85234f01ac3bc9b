"""The worker: what `WorkQueue.work` does. One job's way through these modules:

1. `loop` has as many threads as functions run at once. One that has nothing to run leads, if no
   other does: `session.exchange` leases items for all that are free: `job.Job`s, under a holder
   that no other call has used. `idle` waits if there are none.
2. The handlers run in those threads. Every third of a lease, another thread calls `session.renew`,
   which pushes the end of every lease forward, in the step that checks that it still has the job's
   holder.
3. Handlers return. `policy` says what that means for the items, and the next `exchange` sends it
   (`held`) together with the call that leases the next items; one plain completion is a part of
   that call. Scripts act only while the lease has the job's holder, so a job that was lost ends
   nothing.
4. A lease is lost when a renewal or an end finds that it has ended or has another holder, or when
   the server has not answered until it has ended by our clock. `Job.loss` says why.
5. An end whose reply was lost is sent again. If its lease (for a completion: its data) is gone
   then, the first call was the one that ended it; but if the lease has ended by our clock, too,
   others may have, and it is lost. What a lost reply may have leased is found by its
   holder, and put back.
6. A stop takes nothing more and lets handlers finish; `session.forgive` has cleans (`core.repair`,
   run by anybody at any time) not count what they return of it, in case the worker is killed
   meanwhile. If a thread fails, the others finish what they run, what is left is put back, and
   `run` raises.

`control` has what a worker tells, how it is asked to end, and when it ends.
"""
