/**
 * Version 1 of the schema. Never edit it after a release: a change is a new version, and the fixture of this one stays.
 *
 * - `session` changes with every append, so it has no index on a column that an append changes.
 * - `entry.n` counts the lines of a log. It equals their seq unless lines were lost before they were copied here.
 * - `summary` and `entry_text` are derived from the lines, some time after them; `pending_row` and `pending_text` name
 *   the sessions that they lag behind.
 * - `search_term` has each term of the texts once, so that a part of a word is looked for among the words, not among the texts.
 * - Readers see one tenant, by row-level security. All writes go through functions that run as the owner of the schema.
 * - Each call names its tenant. A login role in `bound_role` serves one tenant, whatever tenant its statements name.
 */
export const schema1 = String.raw`
create table version (number int not null);
insert into version values (1);

create table node (
  id uuid primary key,
  address text,
  host text not null,
  process text not null,
  lease_until timestamptz not null
);

create table session (
  key bigint generated always as identity primary key,
  tenant text collate "C" not null,
  id text collate "C" not null,
  creation uuid not null,
  place text not null default 'active' check (place in ('active', 'archive', 'trash')),
  term int not null default 0,
  head int not null default 1,
  lines int not null default 1,
  node uuid,
  claim uuid,
  is_row_stale boolean not null default true,
  is_text_stale boolean not null default true,
  unique (tenant, id)
) with (fillfactor = 70);
-- An append changes neither the node nor this index.
create index session_node on session (node) where node is not null;

create table entry (
  key bigint not null,
  n int not null,
  tenant text collate "C" not null,
  line text collate "C" not null,
  primary key (key, n)
);

create table blob (
  key bigint not null,
  sha256 text collate "C" not null,
  tenant text collate "C" not null,
  bytes bytea not null,
  primary key (key, sha256)
);

create table derived (
  key bigint not null,
  piece int not null,
  tenant text collate "C" not null,
  content text collate "C" not null,
  primary key (key, piece)
);

create table summary (
  key bigint primary key,
  tenant text collate "C" not null,
  id text collate "C" not null,
  place text not null,
  row_lines int not null default 0,
  text_lines int not null default 0,
  modified text collate "C" not null default '',
  status text not null default 'idle',
  cwd text collate "C",
  haystack text collate "C" not null default '',
  info text collate "C" not null default ''
);
create index summary_newest on summary (tenant, place, modified desc, id desc);
create index summary_folder on summary (tenant, place, cwd, modified desc, id desc);
create index summary_haystack on summary using gin (haystack gin_trgm_ops);

create table entry_text (
  key bigint not null,
  n int not null,
  tenant text collate "C" not null,
  seq int not null,
  ms bigint not null,
  role text not null,
  folded text collate "C" not null,
  terms tsvector not null,
  primary key (key, n)
);
create index entry_text_newest on entry_text (tenant, ms desc);
create index entry_text_folded on entry_text using gin (folded gin_trgm_ops);
create index entry_text_terms on entry_text using gin (terms);

create table search_term (
  tenant text collate "C" not null,
  term text collate "C" not null,
  primary key (tenant, term)
);
create index search_term_parts on search_term using gin (term gin_trgm_ops);

-- How large the first lines of a session and its blobs are, as far as somebody has asked.
create table stored_size (
  key bigint primary key,
  tenant text collate "C" not null,
  lines int not null,
  line_bytes bigint not null,
  blob_bytes bigint not null
);

create table bound_role (role name primary key, tenant text collate "C" not null);

-- Small texts that the servers of a tenant share, such as their tokens. An edit has an id, so that it can be repeated.
create table document (
  tenant text collate "C" not null,
  name text collate "C" not null,
  version int not null,
  edit uuid not null,
  content text collate "C" not null,
  primary key (tenant, name)
);

create table pending_row (key bigint primary key, tenant text collate "C" not null);
create table pending_text (key bigint primary key, tenant text collate "C" not null);
create index pending_row_tenant on pending_row (tenant);
create index pending_text_tenant on pending_text (tenant);

-- The only tenant of the role that has logged in; null if it serves all tenants.
create function bound_tenant() returns text
language plpgsql stable security definer set search_path = tapetree, pg_temp as $$
begin
  return (select tenant from bound_role where role = session_user);
end $$;

-- Asked once for each statement, not for each row.
create function is_served(a_tenant text) returns boolean
language plpgsql stable security definer set search_path = tapetree, pg_temp as $$
begin
  return coalesce(bound_tenant() = a_tenant, true);
end $$;

create function require_tenant(variadic tenants text[]) returns void
language plpgsql stable security definer set search_path = tapetree, pg_temp as $$
declare bound text := bound_tenant();
begin
  if bound is not null and exists (select from unnest(tenants) t where t is distinct from bound) then
    raise insufficient_privilege using message = 'This role serves another tenant.';
  end if;
end $$;

do $$
declare name text;
begin
  foreach name in array array['session', 'entry', 'blob', 'derived', 'stored_size', 'summary', 'entry_text', 'search_term', 'pending_row', 'pending_text'] loop
    execute format('alter table %I enable row level security', name);
    execute format('create policy one_tenant on %I for select to tapetree_app using (tenant = current_setting(''tapetree.tenant'', true) and (select is_served(current_setting(''tapetree.tenant'', true))))', name);
    execute format('grant select on %I to tapetree_app', name);
  end loop;
end $$;
grant select on version to tapetree_app;

-- Writes. Each one names the tenant, and finds a session only together with it.

create function create_session(a_tenant text, a_id text, a_creation uuid, header text) returns boolean
language plpgsql security definer set search_path = tapetree, pg_temp as $$
declare a_key bigint;
begin
  perform require_tenant(a_tenant);
  insert into session (tenant, id, creation) values (a_tenant, a_id, a_creation)
    on conflict (tenant, id) do nothing returning key into a_key;
  if a_key is null then
    return exists (select from session where tenant = a_tenant and id = a_id and creation = a_creation);
  end if;
  insert into entry (key, n, tenant, line) values (a_key, 1, a_tenant, header);
  insert into summary (key, tenant, id, place) values (a_key, a_tenant, a_id, 'active');
  insert into pending_row values (a_key, a_tenant);
  insert into pending_text values (a_key, a_tenant);
  return true;
end $$;

-- One batch for each session, all sessions in one statement. The batches whose session has another term or another last
-- line are not in the result, and none of their lines is stored.
create function append_lines(
  tenants text[], keys bigint[], terms int[], heads int[], counts int[], owners int[], offsets int[], body text
) returns table (place int, first int)
language plpgsql security definer set search_path = tapetree, pg_temp as $$
#variable_conflict use_column
begin
  perform require_tenant(variadic tenants);
  return query
  with batch as materialized (
    select b.place::int, b.tenant, b.key, b.term, b.head, b.count
    from unnest(tenants, keys, terms, heads, counts) with ordinality as b (tenant, key, term, head, count, place)
  ), held as materialized (
    select b.place, b.count, s.key, s.tenant, s.lines, s.is_row_stale, s.is_text_stale
    from batch b join session s on s.key = b.key and s.tenant = b.tenant and s.term = b.term and s.head = b.head
    order by s.key for no key update of s
  ), moved as (
    update session s
    set head = s.head + h.count, lines = s.lines + h.count, is_row_stale = true, is_text_stale = true
    from held h where s.key = h.key
  ), stored as (
    insert into entry (key, n, tenant, line)
    select h.key, h.lines + l.n, h.tenant, l.line
    from unnest(owners, offsets, string_to_array(body, E'\n')) as l (place, n, line) join held h on h.place = l.place
  ), stale_rows as (
    insert into pending_row select h.key, h.tenant from held h where not h.is_row_stale on conflict do nothing
  ), stale_texts as (
    insert into pending_text select h.key, h.tenant from held h where not h.is_text_stale on conflict do nothing
  )
  select h.place, h.lines + 1 from held h;
end $$;

create function is_living(a_node uuid) returns boolean
language sql stable security definer set search_path = tapetree, pg_temp as $$
  select exists (select from node where id = a_node and lease_until > clock_timestamp())
$$;

-- Whether nobody renews the lease of a node any more. Waits for a renewal that is under way, and holds up later ones, which then find
-- what was claimed.
create function is_dead(a_node uuid) returns boolean
language plpgsql security definer set search_path = tapetree, pg_temp as $$
begin
  if is_living(a_node) then return false; end if;
  perform from node where id = a_node for share;
  return not is_living(a_node);
end $$;

-- Renews the lease of a node. Returns those of its claims that no longer hold, also of those that it waited for.
create function beat(
  a_node uuid, a_address text, a_host text, a_process text, lease_ms int, keys bigint[], claims uuid[]
) returns table (key bigint, claim uuid)
language plpgsql security definer set search_path = tapetree, pg_temp as $$
#variable_conflict use_column
begin
  insert into node values (a_node, a_address, a_host, a_process, clock_timestamp() + lease_ms * interval '1 ms')
  on conflict (id) do update
    set lease_until = clock_timestamp() + lease_ms * interval '1 ms', address = coalesce(excluded.address, node.address);
  return query select c.key, c.claim from unnest(keys, claims) as c (key, claim)
    where not exists (select from session s where s.key = c.key and s.claim = c.claim);
end $$;

create function end_node(a_node uuid) returns void
language plpgsql security definer set search_path = tapetree, pg_temp as $$
begin
  delete from node where id = a_node or lease_until < clock_timestamp() - interval '1 day';
end $$;

-- A claim has an id of its own, so that a caller that lost the answer can ask again.
create function claim_session(a_tenant text, a_id text, a_node uuid, a_claim uuid, is_forced boolean)
returns table (outcome text, key bigint, term int, head int, lines int, owner text)
language plpgsql security definer set search_path = tapetree, pg_temp as $$
#variable_conflict use_column
declare held session;
begin
  perform require_tenant(a_tenant);
  select * into held from session s where s.tenant = a_tenant and s.id = a_id and s.place = 'active' for update;
  if held.key is null then
    return query select 'missing', null::bigint, null::int, null::int, null::int, null::text;
  elsif held.claim is distinct from a_claim and held.node is not null and not is_forced and not is_dead(held.node) then
    return query select 'owned', held.key, null::int, null::int, null::int,
      (select json_build_object('host', n.host, 'process', n.process, 'address', n.address)::text from node n where n.id = held.node);
  else
    if held.claim is distinct from a_claim then
      update session s set term = s.term + 1, node = a_node, claim = a_claim where s.key = held.key;
      held.term := held.term + 1;
    end if;
    return query select 'claimed', held.key, held.term, held.head, held.lines, null::text;
  end if;
end $$;

-- The sessions whose node no longer lives, with their headers. Every node asks often, so this steps through the index from
-- one owner to the next instead of reading all sessions that have one.
create function abandoned_sessions(a_tenant text, a_node uuid) returns table (key bigint, header text)
language plpgsql security definer set search_path = tapetree, pg_temp as $$
#variable_conflict use_column
declare dead uuid[];
begin
  perform require_tenant(a_tenant);
  dead := array(
    with recursive owner (node) as (
      (select s.node from session s where s.node is not null order by s.node limit 1)
      union all
      select (select s.node from session s where s.node > o.node order by s.node limit 1) from owner o where o.node is not null
    )
    select o.node from owner o where o.node <> a_node and not is_living(o.node)
  );
  if cardinality(dead) = 0 then return; end if;
  return query
    select s.key, e.line from session s join entry e on e.key = s.key and e.n = 1
    where s.node = any (dead) and s.tenant = a_tenant and s.place = 'active';
end $$;

-- Claims those of the sessions whose node no longer lives. Those that another call is claiming are left to it. A repeated
-- call returns what its first one has claimed.
create function claim_abandoned(a_tenant text, a_node uuid, a_claim uuid, keys bigint[])
returns table (id text, key bigint, term int, head int, lines int)
language plpgsql security definer set search_path = tapetree, pg_temp as $$
#variable_conflict use_column
begin
  perform require_tenant(a_tenant);
  update session s set term = s.term + 1, node = a_node, claim = a_claim
  where s.key in (
    select o.key from session o
    where o.key = any (keys) and o.tenant = a_tenant and o.place = 'active' and o.node <> a_node and is_dead(o.node)
    for update skip locked
  );
  return query select s.id, s.key, s.term, s.head, s.lines from session s
    where s.key = any (keys) and s.node = a_node and s.claim = a_claim and s.tenant = a_tenant;
end $$;

-- The new term of the writer; null if another one took over.
create function reclaim_session(a_tenant text, a_key bigint, a_node uuid, old_claim uuid, new_claim uuid) returns int
language sql security definer set search_path = tapetree, pg_temp as $$
  update session
  set term = term + (claim <> new_claim)::int, claim = new_claim, node = a_node
  where tenant = a_tenant and key = a_key and claim in (old_claim, new_claim) and tenant = coalesce(bound_tenant(), tenant)
  returning term
$$;

create function release_session(a_tenant text, a_key bigint, a_claim uuid) returns void
language sql security definer set search_path = tapetree, pg_temp as $$
  update session set node = null, claim = null where tenant = a_tenant and key = a_key and claim = a_claim
    and tenant = coalesce(bound_tenant(), tenant)
$$;

-- Leaves a session to whoever claims abandoned ones: no node has this id.
create function hand_over_session(a_tenant text, a_key bigint, a_claim uuid) returns void
language sql security definer set search_path = tapetree, pg_temp as $$
  update session set node = '00000000-0000-0000-0000-000000000000'
  where tenant = a_tenant and key = a_key and claim = a_claim and tenant = coalesce(bound_tenant(), tenant)
$$;

-- The sessions that a node owns by other claims than these.
create function unheld_sessions(a_tenant text, a_node uuid, claims uuid[]) returns table (key bigint, claim uuid)
language sql stable security definer set search_path = tapetree, pg_temp as $$
  select key, claim from session
  where tenant = a_tenant and node = a_node and claim <> all (claims) and tenant = coalesce(bound_tenant(), tenant)
$$;

create function owner_of(a_tenant text, a_key bigint) returns text
language sql stable security definer set search_path = tapetree, pg_temp as $$
  select json_build_object('host', n.host, 'process', n.process, 'address', n.address)::text
  from session s join node n on n.id = s.node and n.lease_until > clock_timestamp()
  where s.tenant = a_tenant and s.key = a_key and s.tenant = coalesce(bound_tenant(), s.tenant)
$$;

create function put_blob(a_tenant text, a_key bigint, a_term int, a_sha256 text, a_bytes bytea) returns boolean
language plpgsql security definer set search_path = tapetree, pg_temp as $$
begin
  perform require_tenant(a_tenant);
  perform from session where tenant = a_tenant and key = a_key and term = a_term for share;
  if not found then return false; end if;
  insert into blob (key, sha256, tenant, bytes) values (a_key, a_sha256, a_tenant, a_bytes) on conflict do nothing;
  return true;
end $$;

-- What can be derived again waits for no disk and no standby, so that its locks do not hold up appends.
-- Pieces of checkpoints, of many sessions in one statement; returns the places of the sessions that have this term. The
-- lock keeps a session from being erased, and lets it append.
create function save_derived(
  tenants text[], keys bigint[], terms int[], counts int[], owners int[], pieces int[], body text
) returns int[]
language plpgsql security definer set search_path = tapetree, pg_temp as $$
declare places int[];
begin
  perform require_tenant(variadic tenants);
  perform set_config('synchronous_commit', 'off', true);
  with held as materialized (
    select b.place::int, b.count, s.key, s.tenant
    from unnest(tenants, keys, terms, counts) with ordinality as b (tenant, key, term, count, place)
      join session s on s.key = b.key and s.tenant = b.tenant and s.term = b.term
    order by s.key for key share of s
  ), dropped as (
    delete from derived d using held h where d.key = h.key and d.piece >= h.count
  ), stored as (
    insert into derived (key, piece, tenant, content)
    select h.key, p.piece, h.tenant, p.content
    from unnest(owners, pieces, string_to_array(body, E'\x1e')) as p (place, piece, content) join held h on h.place = p.place
    on conflict (key, piece) do update set content = excluded.content
  )
  select array_agg(h.place) into places from held h;
  return places;
end $$;

-- Rows of the list, of many sessions in one statement. A session that has grown since, or that an append holds, stays in
-- pending_row. The sessions are locked last and never waited for, so that their appends wait as little as possible.
create function save_rows(
  tenants text[], keys bigint[], counts int[], times text[], statuses text[], folders text[], haystacks text[], infos text[]
) returns void
language plpgsql security definer set search_path = tapetree, pg_temp as $$
begin
  perform require_tenant(variadic tenants);
  perform set_config('synchronous_commit', 'off', true);
  update summary m
  set row_lines = b.lines, modified = b.modified, status = b.status, cwd = b.cwd, haystack = b.haystack, info = b.info
  from unnest(tenants, keys, counts, times, statuses, folders, haystacks, infos)
      as b (tenant, key, lines, modified, status, cwd, haystack, info)
    join session s on s.key = b.key and s.tenant = b.tenant and s.lines = b.lines
  where m.key = s.key and m.row_lines < b.lines;
  with held as materialized (
    select s.key
    from unnest(tenants, keys, counts) as b (tenant, key, lines)
      join session s on s.key = b.key and s.tenant = b.tenant and s.lines = b.lines
    where s.is_row_stale
    order by s.key for no key update of s skip locked
  ), known as (
    delete from pending_row p using held h where p.key = h.key
  )
  update session s set is_row_stale = false from held h where s.key = h.key;
end $$;

create function save_row(
  a_tenant text, a_key bigint, a_lines int, a_modified text, a_status text, a_cwd text, a_haystack text, a_info text
) returns void
language plpgsql security definer set search_path = tapetree, pg_temp as $$
declare now_lines int;
begin
  perform require_tenant(a_tenant);
  perform set_config('synchronous_commit', 'off', true);
  select lines into now_lines from session where tenant = a_tenant and key = a_key for update;
  if now_lines is null or now_lines < a_lines then return; end if;
  update summary
  set row_lines = a_lines, modified = a_modified, status = a_status, cwd = a_cwd, haystack = a_haystack, info = a_info
  where key = a_key and row_lines < a_lines;
  if now_lines = a_lines then
    delete from pending_row where key = a_key;
    update session set is_row_stale = false where key = a_key and is_row_stale;
  end if;
end $$;

-- A text that is saved shares this lock; whoever removes terms that no text has any more holds it alone.
create function search_term_lock(a_tenant text) returns bigint
language sql immutable set search_path = tapetree, pg_temp as $$ select hashtextextended(a_tenant, 7461706574726565) $$;

create function save_texts(a_tenant text, a_key bigint, a_from int, a_through int, texts jsonb) returns void
language plpgsql security definer set search_path = tapetree, pg_temp as $$
declare now_lines int;
begin
  perform require_tenant(a_tenant);
  perform set_config('synchronous_commit', 'off', true);
  select lines into now_lines from session where tenant = a_tenant and key = a_key for update;
  if now_lines is null or now_lines < a_through then return; end if;
  update summary set text_lines = a_through where key = a_key and text_lines = a_from;
  -- Another process has saved them.
  if not found then return; end if;
  perform pg_advisory_xact_lock_shared(search_term_lock(a_tenant));
  -- In order, so that two processes wait for each other in one direction only.
  insert into search_term select distinct a_tenant, term
  from jsonb_to_recordset(texts) as t (terms jsonb), jsonb_array_elements_text(t.terms) as term order by term
  on conflict do nothing;
  insert into entry_text (key, n, tenant, seq, ms, role, folded, terms)
  select a_key, t.n, a_tenant, t.seq, t.ms, t.role, t.folded,
    array_to_tsvector(array(select jsonb_array_elements_text(t.terms)))
  from jsonb_to_recordset(texts) as t (n int, seq int, ms bigint, role text, folded text, terms jsonb);
  if now_lines = a_through then
    delete from pending_text where key = a_key;
    update session set is_text_stale = false where key = a_key and is_text_stale;
  end if;
end $$;

create function move_session(a_tenant text, a_id text, a_place text) returns text
language plpgsql security definer set search_path = tapetree, pg_temp as $$
declare held session;
begin
  perform require_tenant(a_tenant);
  select * into held from session where tenant = a_tenant and id = a_id for update;
  if held.key is null then return 'missing'; end if;
  if held.place = a_place then return 'moved'; end if;
  if held.node is not null and not is_dead(held.node) then return 'owned'; end if;
  -- A writer that died here must not come back to a session that was moved away.
  update session set place = a_place, term = term + 1, node = null, claim = null where key = held.key;
  update summary set place = a_place where key = held.key;
  return 'moved';
end $$;

create function quoted_term(term text) returns text
language sql immutable set search_path = tapetree, pg_temp as $$
  select '''' || replace(replace(term, '\', '\\'), '''', '''''') || ''''
$$;

create function erase_session(a_tenant text, a_id text) returns text
language plpgsql security definer set search_path = tapetree, pg_temp as $$
declare
  held session;
  erased text[];
begin
  perform require_tenant(a_tenant);
  select * into held from session where tenant = a_tenant and id = a_id for update;
  if held.key is null then return 'missing'; end if;
  if held.node is not null and not is_dead(held.node) then return 'owned'; end if;
  delete from entry where key = held.key;
  delete from blob where key = held.key;
  delete from derived where key = held.key;
  delete from stored_size where key = held.key;
  perform pg_advisory_xact_lock(search_term_lock(a_tenant));
  erased := array(select distinct unnest(tsvector_to_array(t.terms)) from entry_text t where t.key = held.key);
  delete from entry_text where key = held.key;
  delete from search_term s where s.tenant = a_tenant and s.term = any (erased)
    and not exists (select from entry_text t where t.tenant = a_tenant and t.terms @@ quoted_term(s.term)::tsquery);
  delete from summary where key = held.key;
  delete from pending_row where key = held.key;
  delete from pending_text where key = held.key;
  delete from session where key = held.key;
  return 'erased';
end $$;

create function read_document(a_tenant text, a_name text) returns table (version int, content text)
language plpgsql stable security definer set search_path = tapetree, pg_temp as $$
#variable_conflict use_column
begin
  perform require_tenant(a_tenant);
  return query select d.version, d.content from document d where d.tenant = a_tenant and d.name = a_name;
end $$;

-- Whether the edit was made. It is not if the document has another version; 0: if there is one.
create function write_document(a_tenant text, a_name text, a_version int, a_edit uuid, a_content text) returns boolean
language plpgsql security definer set search_path = tapetree, pg_temp as $$
begin
  perform require_tenant(a_tenant);
  if a_version = 0 then
    insert into document values (a_tenant, a_name, 1, a_edit, a_content) on conflict do nothing;
  else
    update document set version = version + 1, edit = a_edit, content = a_content
    where tenant = a_tenant and name = a_name and version = a_version;
  end if;
  return exists (select from document where tenant = a_tenant and name = a_name and edit = a_edit);
end $$;

-- The bytes of all lines and blobs, or of those of sessions in some folders. Each line is measured once, and blobs again
-- after new lines. The lock keeps a session from being erased, and lets it append.
create function stored_bytes(a_tenant text, folders text[], has_none boolean) returns bigint
language plpgsql security definer set search_path = tapetree, pg_temp as $$
begin
  perform require_tenant(a_tenant);
  perform set_config('synchronous_commit', 'off', true);
  with grown as materialized (
    select s.key, s.tenant, s.lines, coalesce(z.lines, 0) as from_line, coalesce(z.line_bytes, 0) as line_bytes
    from session s left join stored_size z on z.key = s.key
    where s.tenant = a_tenant and s.lines is distinct from z.lines
    order by s.key for key share of s
  )
  insert into stored_size as z (key, tenant, lines, line_bytes, blob_bytes)
  select g.key, g.tenant, g.lines,
    g.line_bytes + (select coalesce(sum(octet_length(e.line) + 1), 0) from entry e
      where e.key = g.key and e.n > g.from_line and e.n <= g.lines),
    (select coalesce(sum(octet_length(b.bytes)), 0) from blob b where b.key = g.key)
  from grown g order by g.key
  on conflict (key) do update
  set lines = excluded.lines, line_bytes = excluded.line_bytes, blob_bytes = excluded.blob_bytes
  where z.lines < excluded.lines;
  return (
    select coalesce(sum(z.line_bytes + z.blob_bytes), 0) from stored_size z join summary m on m.key = z.key
    where z.tenant = a_tenant and (folders is null or m.cwd = any (folders) or (m.cwd is null and has_none))
  );
end $$;

-- The nodes that are alive and can be reached, by name.
create function living_nodes() returns table (name text, address text)
language sql stable security definer set search_path = tapetree, pg_temp as $$
  select host, address from node where address is not null and lease_until > clock_timestamp()
$$;

-- Reads. All but the search run as the caller, under row-level security, and set the tenant for their own transaction.

create function find_session(a_tenant text, a_id text) returns table (key bigint, place text, head int, lines int)
language plpgsql set search_path = tapetree, pg_temp as $$
#variable_conflict use_column
begin
  perform set_config('tapetree.tenant', a_tenant, true);
  return query select s.key, s.place, s.head, s.lines from session s where s.tenant = a_tenant and s.id = a_id;
end $$;

create function read_lines(a_tenant text, a_key bigint, a_from int, max_rows int, max_bytes int)
returns table (n int, line text)
language plpgsql set search_path = tapetree, pg_temp as $$
#variable_conflict use_column
declare total int := 0;
begin
  perform set_config('tapetree.tenant', a_tenant, true);
  for n, line in
    select e.n, e.line from entry e where e.key = a_key and e.n >= a_from order by e.n limit max_rows
  loop
    return next;
    total := total + octet_length(line);
    exit when total >= max_bytes;
  end loop;
end $$;

create function read_numbered(a_tenant text, a_key bigint, numbers int[]) returns table (n int, line text)
language plpgsql set search_path = tapetree, pg_temp as $$
#variable_conflict use_column
begin
  perform set_config('tapetree.tenant', a_tenant, true);
  return query select e.n, e.line from entry e where e.key = a_key and e.n = any (numbers);
end $$;

create function count_lines(a_tenant text, keys bigint[]) returns table (key bigint, lines int)
language plpgsql set search_path = tapetree, pg_temp as $$
#variable_conflict use_column
begin
  perform set_config('tapetree.tenant', a_tenant, true);
  return query select s.key, s.lines from session s where s.key = any (keys);
end $$;

create function read_derived(a_tenant text, a_key bigint, is_brief boolean) returns table (piece int, content text)
language plpgsql set search_path = tapetree, pg_temp as $$
#variable_conflict use_column
begin
  perform set_config('tapetree.tenant', a_tenant, true);
  return query select d.piece, d.content from derived d where d.key = a_key and (d.piece = 0 or not is_brief) order by d.piece;
end $$;

create function read_blob(a_tenant text, a_key bigint, a_sha256 text) returns bytea
language plpgsql set search_path = tapetree, pg_temp as $$
begin
  perform set_config('tapetree.tenant', a_tenant, true);
  return (select bytes from blob where key = a_key and sha256 = a_sha256);
end $$;

-- In two steps: a plan for both at once would read all sessions, since the planner takes an empty table for a large one.
create function stale_sessions(a_tenant text, kind text)
returns table (key bigint, id text, lines int, head int, text_lines int)
language plpgsql set search_path = tapetree, pg_temp as $$
#variable_conflict use_column
declare stale bigint[];
begin
  perform set_config('tapetree.tenant', a_tenant, true);
  if kind = 'row' then
    stale := array(select p.key from pending_row p where p.tenant = a_tenant);
  else
    stale := array(select p.key from pending_text p where p.tenant = a_tenant);
  end if;
  if cardinality(stale) = 0 then return; end if;
  return query
    select s.key, s.id, s.lines, s.head, m.text_lines
    from session s join summary m on m.key = s.key where s.key = any (stale);
end $$;

create function list_folders(a_tenant text, a_place text) returns table (cwd text)
language plpgsql set search_path = tapetree, pg_temp as $$
#variable_conflict use_column
begin
  perform set_config('tapetree.tenant', a_tenant, true);
  return query select distinct m.cwd from summary m where m.tenant = a_tenant and m.place = a_place;
end $$;

create function list_sessions(
  a_tenant text, a_place text, a_cwd text, a_status text, pattern text, folders text[], has_none boolean,
  last_modified text, last_id text, max_rows bigint
) returns table (info text)
language plpgsql set search_path = tapetree, pg_temp as $$
#variable_conflict use_column
declare
  query text := 'select m.info from summary m where m.tenant = $1 and m.place = $2';
begin
  perform set_config('tapetree.tenant', a_tenant, true);
  if a_cwd is not null then query := query || ' and m.cwd = $3'; end if;
  if a_status is not null then query := query || ' and m.status = $4'; end if;
  if pattern is not null then query := query || format(' and m.haystack like %L', pattern); end if;
  if folders is not null then query := query || ' and (m.cwd = any ($5) or (m.cwd is null and $6))'; end if;
  if last_id is not null then query := query || ' and (m.modified, m.id) < ($7, $8)'; end if;
  query := query || ' order by m.modified desc, m.id desc limit $9';
  return query execute query using a_tenant, a_place, a_cwd, a_status, folders, has_none, last_modified, last_id, max_rows;
end $$;

-- Runs as the owner and selects the tenant itself: below a policy, LIKE and @@ cannot use an index.
create function search_texts(
  a_tenant text, a_place text, patterns text[], query_terms text, ids text[], roles text[],
  since_ms bigint, until_ms bigint, after_ms bigint, after_id text, after_seq int, max_rows int, parts text[]
) returns table (id text, seq int, role text, line text)
language plpgsql security definer set search_path = tapetree, pg_temp as $$
#variable_conflict use_column
declare
  query text := 'select s.id, t.seq, t.role, e.line from entry_text t join session s on s.key = t.key
    join entry e on e.key = t.key and e.n = t.n where t.tenant = $1 and s.place = $2';
  pattern text;
  found text[];
  -- A part that more terms have is looked for in the texts.
  max_named constant int := 500;
  -- Whether the terms say which texts to compare.
  are_named boolean := query_terms is not null or cardinality(parts) > 0;
begin
  perform require_tenant(a_tenant);
  foreach pattern in array parts loop
    execute format('select array_agg(quoted_term(term)) from (
      select term from search_term where tenant = $1 and term like %L limit $2) s', pattern) into found using a_tenant, max_named + 1;
    if found is null then return; end if;
    if cardinality(found) <= max_named then
      query_terms := concat_ws(' & ', query_terms, '(' || array_to_string(found, ' | ') || ')');
    else
      are_named := false;
    end if;
  end loop;
  foreach pattern in array patterns loop
    -- The empty text keeps the trigrams of all texts out of the plan where the terms are few.
    query := query || format(case when are_named then ' and t.folded || '''' like %L' else ' and t.folded like %L' end, pattern);
  end loop;
  if query_terms is not null then query := query || ' and t.terms @@ $3::tsquery'; end if;
  if ids is not null then query := query || ' and s.id = any ($4)'; end if;
  if roles is not null then query := query || ' and t.role = any ($5)'; end if;
  if since_ms is not null then query := query || ' and t.ms >= $6'; end if;
  if until_ms is not null then query := query || ' and t.ms < $7'; end if;
  if after_id is not null then query := query || ' and (t.ms, s.id, t.seq) < ($8, $9, $10)'; end if;
  query := query || ' order by t.ms desc, s.id desc, t.seq desc limit $11';
  return query execute query using
    a_tenant, a_place, query_terms, ids, roles, since_ms, until_ms, after_ms, after_id, after_seq, max_rows;
end $$;

revoke all on all functions in schema tapetree from public;
grant execute on all functions in schema tapetree to tapetree_app;
`
