-- Appends entries to one experiment: locks its head, writes the entries above it and moves it. The
-- result is the new head; null if the experiment does not exist, is archived or is frozen. A
-- distributed
-- database runs the call on the node that has the experiment, in one trip.
create function append_entries(
    experiment bigint, ordinals bigint[], nonces uuid[], kinds smallint[], firsts integer[],
    seconds integer[], lefts boolean[], answers smallint[], batches bigint[], tickets bigint[],
    chosen bigint[], issued bigint[], details text[], recorded bigint
) returns bigint language plpgsql set search_path from current as $$
declare
    before bigint;
begin
    select e.head into before from experiment as e
    where e.id = append_entries.experiment and e.archived_at_ms is null and e.presence = 'here'
    for no key update;
    if not found then
        return null;
    end if;
    insert into log (
        experiment_id, position, nonce, recorded_at_ms, kind, first_ranker, second_ranker,
        first_left, answer, batch, ticket, chosen_at, issued_at_ms, detail
    )
    select append_entries.experiment, before + entry.ordinal, entry.nonce, recorded, entry.kind,
        entry.first_ranker, entry.second_ranker, entry.first_left, entry.answer, entry.batch,
        entry.ticket, entry.chosen_at, entry.issued_at_ms, entry.detail
    from unnest(
        ordinals, nonces, kinds, firsts, seconds, lefts, answers, batches, tickets, chosen, issued,
        details
    ) as entry (
        ordinal, nonce, kind, first_ranker, second_ranker, first_left, answer, batch, ticket,
        chosen_at, issued_at_ms, detail
    );
    update experiment as e set head = before + cardinality(ordinals)
    where e.id = append_entries.experiment;
    return before + cardinality(ordinals);
end $$;
