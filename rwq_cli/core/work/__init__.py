"""The worker: what `WorkQueue.work` does. One job's way through these modules:

1. *Leased.* `loop` has as many threads as functions run at once. One that has nothing to run leads,
   if no other does: `session.exchange` leases items for all that are free, under a holder that no
   other call has used. Each is a `job.Job`, which `held.HeldJobs` holds from then on. `idle` waits
   if there are none.
2. *Renewed.* The handlers run in those threads. One more thread calls `session.renew` when a third
   of the oldest lease has passed: one call pushes the ends of all forward (`Job.deadline_s`), each
   only if it still has the job's holder.
3. *Ended.* A handler returns; `job.RetryPolicy` says what is to become of the item, and the job is
   held with an unsettled end. The next `exchange` sends all such ends, with the call that leases
   the next items; one plain completion is a part of that call. Scripts act only while the lease has
   the job's holder. The reply settles the end: the listener is told, and the job is held no more.
4. *Lost.* A renewal or an end finds that the lease has ended or has another holder; or no renewal
   was answered until it has ended by our clock; or the item is leased to us again. `Job.loss` says
   why. The listener is told at once if the handler still runs, and its end then sends nothing.
5. *In doubt.* An end whose reply was lost is sent again. If its lease (for a completion: its data)
   is gone then, the first call was the one that ended it; but if the lease has ended by our clock,
   too, others may have, and it is lost. What a lost reply may have leased is found by its holder,
   and put back. Each end has a time of its own: one that is refused for longer than the server may
   be gone ends the worker.
6. *Stopped.* Nothing more is taken, and handlers finish; `session.forgive` has cleans
   (`core.repair`, run by anybody at any time) not count what they return of it, in case the worker
   is killed meanwhile. When nothing runs any more, a server that hangs is cut off after `stop_s`,
   and what it has not acknowledged is lost. If a thread fails, the others finish what they run,
   what is left is put back, and `run` raises.

`control` has what a worker tells, how it is asked to end, and when it ends.
"""
