-- The keys of the other queue of a move.
-- arg to  its name
local to_main, to_processing, to_returns = to .. ':queue', to .. ':processing', to .. ':returns'
local to_delayed, to_buried, to_item = to .. ':delayed', to .. ':buried', to .. ':item:'
local to_lease, to_old_lease = to .. ':lease:', to .. ':leased_by_session:'
