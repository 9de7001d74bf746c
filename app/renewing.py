"""Bulk renewals: judged here where the hosts are at hand, by the store where they are not."""

from adapters.ports import Transaction
from app.working_set import WorkingSet
from domain.ids import HostId
from domain.relay.activity import renewal_refused
from domain.relay.renewals import RefusedRenewal, RenewControls, Renewed, refused_on_sight


def renew_controls(
    command: RenewControls, known: WorkingSet, now: int, transaction: Transaction
) -> Renewed:
    """Renew what the rules allow; the transaction holds the writer lock."""
    refused = refused_on_sight(command.items, now)
    strangers, allowed = [], []
    for index, item in enumerate(command.items):
        if index in refused:
            continue
        host = HostId(item.user_id, item.relay_host_id)
        if not known.knows(host):
            strangers.append(index)
            continue
        held = known.facts.assignments.get(host)
        refusal = renewal_refused(held, item.activity_id, command.cell_id)
        if refusal is None:
            allowed.append(item)
        else:
            refused[index] = refusal.code
    if allowed:
        transaction.extend(allowed, now)
    if strangers:
        asked = [command.items[index] for index in strangers]
        for place, code in transaction.renew(command.cell_id, asked, now):
            refused[strangers[place]] = code
    listed = tuple(RefusedRenewal(index, refused[index]) for index in sorted(refused))
    return Renewed(len(command.items) - len(refused), listed)
