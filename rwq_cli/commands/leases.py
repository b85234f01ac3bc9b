"""`rwq leases`: who holds which item, and for how long."""

import glob
from typing import Annotated

from rwq_cli.cli.choosing import filters
from rwq_cli.cli.options import NULL_RECORDS, ListingOptions
from rwq_cli.commands import Settings, command, option
from rwq_cli.core.inspect.listing import leases as leases_of, merged_leases
from rwq_cli.core.inspect.selection import Selection, Source
from rwq_cli.core.model import State
from rwq_cli.views.items import ITEM_FIELDS, PLAIN_OF_SEVERAL, plain_names

_IN_PROCESSING = (State.LEASED, State.HELD, State.ABANDONED, State.GHOST, State.WRONG_TYPE)


@command(
    record=ITEM_FIELDS,
    reads_only=True,
    excludes=["--mine --holder"],
    null=NULL_RECORDS,
    plain={"a lease": plain_names("leases"), **PLAIN_OF_SEVERAL},
)
@filters(_IN_PROCESSING)
def leases(
    settings: Settings,
    *,
    selection: Selection,
    mine: Annotated[bool, option("--mine", "Only the leases of this session.")] = False,
    listing: ListingOptions,
) -> None:
    """List the items in processing, who holds them and for how long: abandoned items first, then by
    the time left.

    rwq leases -q jobs
    rwq leases -q jobs --by holder
    rwq leases -q jobs --holder 'rwq:deploy@*' -o json
    rwq leases -q jobs --watch 2s
    """
    # Completion does not need it.
    from rwq_cli.cli.listing import Listing

    if mine:
        selection = selection._replace(holder_glob=glob.escape(settings.holder))
    Listing(
        options=listing,
        selection=selection,
        source=Source(processing=True),
        read=lambda queue, **reading: leases_of(queue, selection, **reading),
        name="leases",
        noun="leases" if selection.is_all else "such leases",
        joined=merged_leases,
    ).write()
